"""One file per message: a frozen `View` and the parameters in, protocol types out. Nothing here has state."""
