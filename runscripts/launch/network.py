"""This machine's network interfaces and addresses."""

import os
import socket

from .errors import LaunchError
from .hosts import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional

    from .variables import Env

SIOCGIFADDR, SIOCGIFNETMASK = 0x8915, 0x891B  # linux/sockios.h
INTERFACES = "/sys/class/net"
# Fields of struct ifreq in linux/if.h: the name has 16 bytes, the address lies at bytes 20 to 23.
NAME_BYTES, ADDRESS = 16, slice(20, 24)
VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")


def names() -> "List[str]":
    """Return the interfaces of this machine."""
    try:
        return sorted(os.listdir(INTERFACES))
    except OSError:
        return sorted(name for _, name in socket.if_nameindex())


def ask(interface: str, request: int) -> "Optional[str]":
    """Return an IPv4 address that the kernel knows of an interface, or None."""
    import fcntl  # noqa: PLC0415

    record = interface.encode()[: NAME_BYTES - 1].ljust(256, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            return socket.inet_ntoa(fcntl.ioctl(any_socket.fileno(), request, record)[ADDRESS])
        except OSError:
            return None


def matching(wanted: str) -> "List[str]":
    """Return the interfaces that a list like NCCL's asks for.

    Prefixes; with '=' in front exact names; with '^' all but these (NCCL_SOCKET_IFNAME in NVIDIA's
    NCCL user guide, "Environment Variables").
    """
    exclude, exact = wanted.startswith("^"), wanted.lstrip("^").startswith("=")
    items = [item for item in wanted.lstrip("^=").split(",") if item]

    def fits(name: str) -> bool:
        return any(name == item if exact else name.startswith(item) for item in items)

    return [name for name in names() if fits(name) != exclude]


def address_of_interface(wanted: str, variable: str) -> str:
    """Return the IPv4 address of the first interface that fits; raises `LaunchError` for none."""
    interfaces = matching(wanted)
    for interface in interfaces:
        address = ask(interface, SIOCGIFADDR)
        if address:
            return address
    raise LaunchError(missing(variable, wanted, "has no IPv4 address" if interfaces else ""))


def address_on(host: str, wanted: str) -> str:
    """Return a host's IPv4 address on the network of our interface; raises `LaunchError`.

    The kernel knows the addresses of this machine. Another host's addresses follow from names only.
    A name is the host's own, or an interface's (nid001-hsn0 on HPE Cray EX, jwb0001i on JUWELS).
    """
    if is_own(host):
        return address_of_interface(wanted, "--interface")
    own = address_of_interface(wanted, "--interface")
    mask = netmask_of(own)
    short, dot, domain = host.partition(".")
    tried = [host]
    tried += [short + "-" + name + dot + domain for name in matching(wanted)]
    tried += [short + "i" + dot + domain]
    for name in tried:
        for address in known_addresses(name):
            if ":" not in address and masked(address, mask) == masked(own, mask):
                return address
    message = (
        "--interface='{}': none of the names {} has an address on its network ({}): set"
        " MASTER_ADDR, or let conda-python-distributed ask rank 0 (SIFWRIGHT_INTERFACE='{}')"
    )
    raise LaunchError(message.format(wanted, ", ".join(tried), own, wanted))


def known_addresses(host: str) -> "List[str]":
    try:
        return addresses(host)
    except OSError:
        return []


def netmask_of(address: str) -> str:
    masks = [ask(name, SIOCGIFNETMASK) for name in names() if ask(name, SIOCGIFADDR) == address]
    return masks[0] or "255.255.255.255"


def masked(address: str, mask: str) -> int:
    both = [int.from_bytes(socket.inet_aton(text), "big") for text in (address, mask)]
    return both[0] & both[1]


def missing(variable: str, wanted: str, reason: str = "") -> str:
    reason = reason or "names no network interface of {}".format(socket.gethostname())
    return "{}='{}' {}, which has {}: set it to one of them or unset it".format(
        variable, wanted, reason, ", ".join(names())
    )


def check_interfaces(env: "Env") -> None:
    """Refuse interfaces that do not exist: NCCL and gloo would fail, or wait, on some ranks."""
    for variable in VARIABLES:
        if env.get(variable) and not matching(env[variable]):
            raise LaunchError(missing(variable, env[variable]))


def addresses(host: str) -> "List[str]":
    """Return the addresses of a host's name; raises `OSError` if it has none."""
    answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in answers))


def is_own(host: str) -> bool:
    """Tell whether a name or address is this machine's."""
    try:
        return any(can_bind(address) for address in addresses(host))
    except OSError:
        return False


def can_bind(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        try:
            sock.bind((address, 0))
        except OSError:
            return False
    return True


def why_not_own(host: str) -> str:
    try:
        return "it is {}".format(", ".join(addresses(host)))
    except OSError as error:
        return "it cannot be resolved: {}".format(error.strerror)


def gloo_interface(local: "Optional[str]") -> "Dict[str, str]":
    """Choose gloo's interface where it would choose a wrong one.

    gloo takes the address of the host's own name. That may be a loopback address (Debian's
    127.0.1.1) or none. Then ranks on other nodes wait for it until they time out.
    """
    if not local or has_real_address():
        return {}
    interfaces = [name for name in names() if ask(name, SIOCGIFADDR) == local]
    return (
        {"GLOO_SOCKET_IFNAME": interfaces[0], "TP_SOCKET_IFNAME": interfaces[0]}
        if interfaces
        else {}
    )


def has_real_address() -> bool:
    try:
        own = addresses(socket.gethostname())
    except OSError:
        return False
    return bool(own) and not any(map(is_loopback, own))
