"""Containers by the texts that Linux shows. The texts have the form that the runtimes document and give."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop_app.telemetry.containers import container_of, holds_card, own_container, sees_all_pids

HEX = "3f1c9a7be4d2065f8a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f"
POD = "8c2f1d3a-5b6e-4f70-9a81-b2c3d4e5f607"
V1 = "12:pids:{0}\n11:memory:{0}\n10:cpu,cpuacct:{0}\n2:freezer:{0}\n1:name=systemd:{0}\n0::{1}\n"

TEXTS = {
    # cgroup v2, one line
    f"0::/system.slice/docker-{HEX}.scope": "docker",
    f"0::/docker/{HEX}": "docker",
    f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{HEX}.scope": "docker",
    f"0::/system.slice/docker-{HEX}.scope/init": "docker",
    f"0::/machine.slice/libpod-{HEX}.scope/container": "podman",
    f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{HEX}.scope/container": "podman",
    f"0::/machine.slice/libpod-conmon-{HEX}.scope": None,
    f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice/"
    f"cri-containerd-{HEX}.scope": "kubernetes",
    f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/crio-{HEX}.scope": "kubernetes",
    f"0::/kubepods/besteffort/pod{POD}/{HEX}": "kubernetes",
    f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/cri-containerd-{HEX}.scope": "kubernetes",
    f"0::/system.slice/nerdctl-{HEX}.scope": "containerd",
    f"0::/default/{HEX}": "containerd",
    "0::/lxc.payload.trainer/system.slice/ssh.service": "lxc",
    "0::/lxc/trainer/init.scope": "lxc",
    "0::/lxc.monitor.trainer": None,
    "0::/machine.slice/systemd-nspawn@bookworm.service/payload/init.scope": "nspawn",
    f"0::/ecs/0123456789abcdef0123456789abcdef/{HEX}": "other",
    # no container: sessions, services, applications, a virtual machine, Slurm, the root of a namespace
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-4711.scope": None,
    "0::/user.slice/user-1000.slice/session-2.scope": None,
    "0::/system.slice/docker.service": None,
    "0::/system.slice/containerd.service": None,
    "0::/system.slice/lxcfs.service": None,
    "0::/machine.slice/machine-qemu\\x2d1\\x2dwindows.scope/libvirt/emulator": None,
    "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0": None,
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/snap.docker-desktop.hook.scope": None,
    "0::/": None,
    "": None,
    "garbage": None,
    # cgroup v1, and both
    V1.format(f"/docker/{HEX}", "/system.slice/containerd.service"): "docker",
    V1.format(f"/kubepods/burstable/pod{POD}/{HEX}", "/"): "kubernetes",
    V1.format(f"/kubepods.slice/kubepods-pod1.slice/docker-{HEX}.scope", "/"): "kubernetes",
    V1.format(f"/libpod_parent/libpod-{HEX}", f"/libpod_parent/libpod-{HEX}"): "podman",
    V1.format(f"/machine.slice/libpod-{HEX}.scope", "/"): "podman",
    V1.format("/lxc/trainer", "/lxc/trainer/init.scope"): "lxc",
    V1.format("/lxc.monitor/trainer", "/"): None,
    V1.format("/user.slice", "/user.slice/user-1000.slice/session-2.scope"): None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), TEXTS.items(), ids=[text[:60].replace("\n", " ") for text in TEXTS])
def test_a_cgroup_names_its_container(text: str, kind: str | None) -> None:
    assert container_of(text) == kind


class TestThisSystem:
    @pytest.mark.parametrize(
        ("files", "environment", "kind"),
        [
            ((), {}, None),
            ((".dockerenv",), {}, "docker"),
            (("run/.containerenv",), {"container": "podman"}, "podman"),
            ((), {"container": "lxc"}, "lxc"),
            ((), {"container": "wsl"}, "other"),
            ((".dockerenv",), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ],
    )
    def test_marks_of_its_own(
        self, tmp_path: Path, files: tuple[str, ...], environment: dict[str, str], kind: str | None
    ) -> None:
        for name in files:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        assert own_container(root=tmp_path, environment=environment, cgroup="0::/") == kind

    @pytest.mark.parametrize(("inode", "all_pids"), [(4026531836, True), (4026532290, False), (None, None)])
    def test_the_first_namespace_of_pids(self, tmp_path: Path, inode: int | None, all_pids: bool | None) -> None:
        if inode is not None:
            (tmp_path / "proc/self/ns").mkdir(parents=True)
            (tmp_path / "proc/self/ns/pid").symlink_to(f"pid:[{inode}]")
        assert sees_all_pids(root=tmp_path) is all_pids

    def test_a_card_that_is_held(self, tmp_path: Path) -> None:
        for pid, files in {1: ["/dev/null", "/dev/nvidia0"], 2: ["/dev/null", "socket:[17]"], 3: []}.items():
            folder = tmp_path / f"proc/{pid}/fd"
            folder.mkdir(parents=True)
            for number, target in enumerate(files):
                (folder / str(number)).symlink_to(target)
        assert [holds_card(pid, root=tmp_path) for pid in (1, 2, 3, 4)] == [True, False, False, None]
