; Installs for one person, without administrator. Called by recipe.py, which defines NAME, TITLE,
; VERSION, SUMMARY, TREE, ICON, OUT, KIB and COMPRESSOR.
Unicode true
Target amd64-unicode
!include MUI2.nsh
!include FileFunc.nsh
SetCompressor /SOLID ${COMPRESSOR}
Name "${TITLE}"
OutFile "${OUT}"
RequestExecutionLevel user
InstallDir "$LOCALAPPDATA\Programs\${TITLE}"
InstallDirRegKey HKCU "Software\${TITLE}" "InstallDir"
ManifestDPIAware true
ManifestSupportedOS all
VIProductVersion "${VERSION}.0"
VIAddVersionKey "ProductName" "${TITLE}"
VIAddVersionKey "FileDescription" "${TITLE} ${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "LegalCopyright" "see the folder licences"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${TITLE}"
!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_ABORTWARNING
!define MUI_FINISHPAGE_RUN "$INSTDIR\larder.exe"
!insertmacro MUI_PAGE_LICENSE "${TREE}/licences/LICENSE-Larder.txt"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

Function .onInit
  ; An open program would keep its old files.
  IfFileExists "$INSTDIR\larder.exe" 0 free
  ClearErrors
  FileOpen $0 "$INSTDIR\larder.exe" a
  IfErrors 0 closed
  MessageBox MB_OKCANCEL|MB_ICONEXCLAMATION "${TITLE} is open. Close it, then choose OK." /SD IDOK IDOK free
  Abort
closed:
  FileClose $0
free:
FunctionEnd

Section
  ; A folder of our own, whatever was chosen: removing takes whole folders away.
  ${GetFileName} "$INSTDIR" $0
  StrCmp $0 "${TITLE}" own
  StrCpy $INSTDIR "$INSTDIR\${TITLE}"
own:
  ; What an installer of ours has written is put aside, and kept until the new version has started
  ; once: its window deletes that folder. Whoever needs it starts larder.exe in it.
  IfFileExists "$INSTDIR\uninstall.exe" 0 fresh
  RMDir /r "$INSTDIR\previous"
  CreateDirectory "$INSTDIR\previous"
  Rename "$INSTDIR\python" "$INSTDIR\previous\python"
  Rename "$INSTDIR\packages" "$INSTDIR\previous\packages"
  Rename "$INSTDIR\licences" "$INSTDIR\previous\licences"
  Rename "$INSTDIR\larder.exe" "$INSTDIR\previous\larder.exe"
  Rename "$INSTDIR\larderctl.exe" "$INSTDIR\previous\larderctl.exe"
  Rename "$INSTDIR\content.sha256" "$INSTDIR\previous\content.sha256"
fresh:
  SetOutPath "$INSTDIR"
  File /r "${TREE}/*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\${TITLE}.lnk" "$INSTDIR\larder.exe" "" "$INSTDIR\larder.exe" 0
  WriteRegStr HKCU "Software\${TITLE}" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "${TITLE}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\larder.exe"
  WriteRegStr HKCU "${UNINSTALL}" "Comments" "${SUMMARY}"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" ${KIB}
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
  ; A folder's menu in the Explorer opens it as a model.
  WriteRegStr HKCU "Software\Classes\Directory\shell\${TITLE}" "" "Open as a model in ${TITLE}"
  WriteRegStr HKCU "Software\Classes\Directory\shell\${TITLE}" "Icon" "$INSTDIR\larder.exe"
  WriteRegStr HKCU "Software\Classes\Directory\shell\${TITLE}\command" "" '"$INSTDIR\larder.exe" --folder "%1"'
SectionEnd

Section "Uninstall"
  ; These folders hold nothing but what was installed; chats, settings and models lie elsewhere.
  RMDir /r "$INSTDIR\python"
  RMDir /r "$INSTDIR\packages"
  RMDir /r "$INSTDIR\licences"
  RMDir /r "$INSTDIR\previous"
  Delete "$INSTDIR\larder.exe"
  Delete "$INSTDIR\larderctl.exe"
  Delete "$INSTDIR\content.sha256"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${TITLE}.lnk"
  DeleteRegKey HKCU "${UNINSTALL}"
  DeleteRegKey HKCU "Software\${TITLE}"
  DeleteRegKey HKCU "Software\Classes\Directory\shell\${TITLE}"
SectionEnd
