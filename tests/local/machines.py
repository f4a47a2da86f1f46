"""Machines that are not at hand: what decides which engine runs on each."""

from deploy.local.preflight import Machine

MODERN = frozenset({"sse2", "avx", "avx2", "bmi2", "f16c", "fma"})
LINUX = Machine("Linux", "x86_64", ("glibc", "2.36"), MODERN, (3, 13))
ARM = Machine("Linux", "aarch64", ("glibc", "2.39"), frozenset({"asimd"}), (3, 12))
APPLE = Machine("Darwin", "arm64", ("", ""), frozenset(), (3, 13), macos="15.1")
INTEL_MAC = Machine("Darwin", "x86_64", ("", ""), frozenset(), (3, 11), macos="13.7.1")
