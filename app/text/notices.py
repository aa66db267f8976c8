"""Sentences about files of the window itself: chats and settings."""

from app.state.chat_values import ChatNotice
from app.state.settings_file import SettingNotice, SettingProblem
from app.text.translate import tr


def chat_notice(notice: ChatNotice, parameter: str) -> str:
    """Say what happened to the file of the chats."""
    if notice is ChatNotice.DAMAGED_SET_ASIDE:
        text = tr(
            "The file with your chats was damaged. It was kept as {parameter}, and a new one begun."
        )
    elif notice is ChatNotice.RESTORED:
        text = tr(
            "The file with your chats was damaged or gone. Your chats are back as they were on "
            "{parameter}; what was left of the file lies beside it, in the folder that the "
            "settings name."
        )
    elif notice is ChatNotice.NOT_SAVED:
        text = tr(
            "Chats cannot be saved ({parameter}). They are kept until you close the window; "
            "free some space or make the folder writable, and they are saved by themselves."
        )
    else:
        text = tr("Your chats are saved again.")
    return text.format(parameter=parameter)


def rested_notice(name: str, minutes: int) -> str:
    """Say that a model was unloaded because nobody asked it anything."""
    return tr(
        "{name} had rested for {minutes} min and gave its memory back, as the settings say."
    ).format(name=name, minutes=minutes)


def setting_notice(notice: SettingNotice) -> str:
    """Say what was wrong with a setting or the file of the settings."""
    texts = {
        SettingProblem.DAMAGED: tr(
            "The settings file {name} could not be understood ({hint}). "
            "It was kept beside the new one, and the defaults are in force."
        ),
        SettingProblem.UNREADABLE: tr(
            "The settings file {name} could not be read ({hint}). The defaults are in force."
        ),
        SettingProblem.WRONG: tr(
            "The setting {name} has a value that is not allowed ({hint}). Its default is in force."
        ),
        SettingProblem.NOT_SAVED: tr(
            "The settings could not be saved to {name} ({hint}). They last until you close the "
            "window."
        ),
        SettingProblem.UNKNOWN: (
            tr("There is no setting {name}; did you mean {hint}?")
            if notice.hint
            else tr("There is no setting {name}; it is not used.")
        ),
    }
    return texts[notice.problem].format(name=notice.name, hint=notice.hint)
