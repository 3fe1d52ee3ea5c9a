"""A user namespace with one id, in which files have the owners that an image gives them."""

# A variable of programs that ask for owners as often as for anything else.
IS_SUPERVISED = "SIFWRIGHT_SUPERVISED"
