"""What a centre installs: the image with its run scripts, an easyconfig, a modulefile."""
