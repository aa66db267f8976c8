"""Models on a hub: searching, looking at one before it is downloaded, downloading."""
