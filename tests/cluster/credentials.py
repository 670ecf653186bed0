"""The key pair, tokens and kubeconfigs of a cluster on loopback."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import modules

# User and groups by kubeconfig. Scheduler and controller manager have the user names that the API server's
# bootstrap roles are bound to, so that RBAC applies to them as in any cluster.
_USERS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "controller-manager": ("system:kube-controller-manager", ""),
    "kwok": ("kwok", "system:masters"),
}


@dataclass(frozen=True)
class Credentials:
    """Files of one cluster: certificate and key for 127.0.0.1, and the token file."""

    folder: Path
    certificate: Path
    key: Path
    tokens: dict[str, str]

    @property
    def token_file(self) -> Path:
        """The file for kube-apiserver's ``--token-auth-file``."""
        return self.folder / "tokens.csv"

    @property
    def ca_bundle(self) -> str:
        """The certificate in base64, for webhook configurations."""
        return base64.b64encode(self.certificate.read_bytes()).decode()

    def kubeconfig(self, user: str, server: str, token: str = "") -> Path:
        """Write a kubeconfig and return its path; without a token the user must be in the token file."""
        path = self.folder / f"{user}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "muster-tests",
                    "cluster": {"server": server, "certificate-authority-data": self.ca_bundle},
                }
            ],
            "users": [{"name": user, "user": {"token": token or self.tokens[user]}}],
            "contexts": [{"name": user, "context": {"cluster": "muster-tests", "user": user}}],
            "current-context": user,
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path


def make(folder: Path) -> Credentials:
    """Write the key pair and the tokens of a new cluster into a folder.

    One self-signed certificate serves the API server and the webhooks, and its key also signs service account
    tokens; that is enough for a cluster that lives as long as a test.
    """
    # Knative verifies tokens with keys that it reads from the API server under the name of its Service.
    hosts = "127.0.0.1,localhost,kubernetes.default.svc"
    subprocess.run(
        [modules.certificate_maker(), "--host", hosts, "--ca", "--ecdsa-curve", "P256"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    tokens = {user: secrets.token_hex(16) for user in _USERS}
    # controller-runtime's webhook server requires these two file names.
    certificate, key = folder / "tls.crt", folder / "tls.key"
    (folder / "cert.pem").rename(certificate)
    (folder / "key.pem").rename(key)
    made = Credentials(folder, certificate, key, tokens)
    rows = [f'{tokens[user]},{name},{user},"{groups}"' for user, (name, groups) in _USERS.items()]
    made.token_file.write_text("\n".join(rows) + "\n")
    made.token_file.chmod(0o600)
    return made
