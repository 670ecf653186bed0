"""One TLS context for all connections to an API server."""

from __future__ import annotations

import ssl

import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from urllib3.util.ssl_ import create_urllib3_context

_LOADED_BY_URLLIB3 = ("ca_certs", "ca_cert_data", "cert_file", "key_file")
"""Settings of a pool whose files urllib3 loads for each connection: a megabyte of certificates takes 5 MB and
0.4 s."""


def manager_of(configuration: Configuration) -> urllib3.PoolManager:
    """Return a pool manager whose connections, also to a proxy, share one context.

    Raises:
        OSError: a certificate or key cannot be read.
        ValueError: the key is encrypted.
    """
    context = configuration.proxy_ssl_context = _context_of(configuration)
    if not configuration.verify_ssl:  # as its kubeconfig says; urllib3 would warn at each request
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    manager: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
    manager.connection_pool_kw.update(dict.fromkeys(_LOADED_BY_URLLIB3), ssl_context=context)
    return manager


def _context_of(configuration: Configuration) -> ssl.SSLContext:
    """Return a context with the certificates of a configuration."""
    context = create_urllib3_context(
        cert_reqs=ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE
    )
    if configuration.ssl_ca_cert or configuration.ca_cert_data:
        context.load_verify_locations(configuration.ssl_ca_cert, None, configuration.ca_cert_data)
    else:
        context.load_default_certs()
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file, password=_no_password)
    return context


def _no_password() -> str:
    """Refuse an encrypted key, for which OpenSSL would ask on the terminal."""
    raise ValueError("the client key is encrypted")
