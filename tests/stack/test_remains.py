"""What is swept away is Docker's, and nothing else."""

from tests.stack import remains

DOCKERS = """\
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i br-0bf92318dd6c ! -o br-0bf92318dd6c -j ACCEPT
-A POSTROUTING -s 172.18.0.0/16 ! -o br-0bf92318dd6c -j MASQUERADE
-A POSTROUTING -s 172.18.0.3/32 -d 172.18.0.3/32 -p tcp -m tcp --dport 443 -j MASQUERADE
-A DOCKER ! -i br-0bf92318dd6c -p tcp -m tcp --dport 443 -j DNAT --to-destination 172.18.0.3:443"""
OTHERS = """\
*filter
:FORWARD ACCEPT [0:0]
-A INPUT -i br-lan -j ACCEPT
-A FORWARD -s 10.0.0.0/8 -j DROP
-A POSTROUTING -s 10.0.0.0/8 -o eth0 -j MASQUERADE
-A POSTROUTING -s 10.0.0.1/32 -d 10.0.0.2/32 -j MASQUERADE
COMMIT"""


def test_rules_of_docker_are_told_from_those_of_others() -> None:
    """Chains, bridges, and a container's way back to itself; the operator's own rules stay."""
    assert remains.without_docker(f"{OTHERS}\n{DOCKERS}") == OTHERS.splitlines()
