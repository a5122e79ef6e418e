"""Lines between members: sockets whose two ends know the secret of one mesh.

A `Door` listens and answers, with a thread for each line. `Lines` are the other ends: each
is used by one ask at a time, and then by the next.

Before the first message both ends show that they know the secret without saying it, and
that they mean the same member::

    door -> asker   nonce
    asker -> door   nonce, role, HMAC(secret, "asks", nonces, role, member)
    door -> asker   HMAC(secret, "answers", nonces, role, member), or zeros

Where the workers use TLS, all of this is within it.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from mlopt.cluster.wire import (
    ASK,
    REFUSAL,
    TELL,
    Answer,
    Header,
    Message,
    Packed,
    pack,
    receive,
    send,
)
from mlopt.errors import (
    ClusterError,
    InputError,
    MemberLostError,
    MloptError,
    StaleEpochError,
    TaskError,
    WireError,
)

Address = tuple[str, int]

# Seconds that an end has to show that it knows the secret.
_PATIENCE = 10.0
_NONCE, _PROOF = 16, 32
_ASKER, _DRIVER = b"a", b"d"
# Seconds of silence after which the system looks whether the other machine is there, and
# how often it does before the line is broken.
_SILENCE, _TRIES = 10, 3
# Seconds until a door that could not let somebody in tries again.
_BREATH = 0.02
# Letters of an error that travel.
_LONGEST_TEXT = 4000

# What a refusal says, as its operation: the error that the asker raises.
_REFUSALS: dict[str, type[MloptError]] = {
    kind.__name__: kind
    for kind in (
        ClusterError,
        InputError,
        MemberLostError,
        StaleEpochError,
        TaskError,
        WireError,
    )
}


class Door:
    """Listens on one host and port, for the askers of one member.

    Parameters
    ----------
    host : str
        An address of this machine, to be bound to.
    member : str
        Whose door this is.
    secret : bytes
    largest : int
        Bytes of the arrays of a message.
    answer : callable
        ``answer(message)`` gives the answer, or raises; called from many threads.
    told : callable
        ``told(header)``: the driver says something that needs no answer.
    left : callable
        The driver's line is closed; nobody else's matters.
    context : ssl.SSLContext, optional
        Without it, lines are not encrypted.

    Attributes
    ----------
    address : tuple of str and int
        Host and port.
    """

    def __init__(
        self,
        host: str,
        member: str,
        secret: bytes,
        largest: int,
        answer: Callable[[Message], Packed],
        told: Callable[[Header], None],
        left: Callable[[], None],
        context: ssl.SSLContext | None = None,
    ) -> None:
        if not secret:
            raise InputError("A door needs a secret: anybody could use it otherwise.")
        family = socket.getaddrinfo(host, None)[0][0]
        self._listening = socket.create_server((host, 0), family=family, backlog=128)
        self.address: Address = self._listening.getsockname()[:2]
        self._member, self._secret, self._largest = member, secret, largest
        self._answer, self._told, self._left = answer, told, left
        self._context = context
        self._changing = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False
        _start(self._accept, f"mlopt-door-{self.address[1]}")

    def close(self) -> None:
        """Let nobody in any more, and everybody out."""
        with self._changing:
            self._closed = True
            lines = list(self._open)
        for line in (self._listening, *lines):
            _break(line)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(_BREATH)  # there are no files left, or who called has gone
                continue
            with self._changing:
                if self._closed:
                    line.close()
                    return
                self._open.add(line)
            name = f"mlopt-line-{line.fileno()}"
            _start(functools.partial(self._serve, line), name)

    def _serve(self, plain: socket.socket) -> None:
        role, line = b"", plain
        # A line that breaks, or on which nonsense comes, is nobody else's business.
        try:
            _tune(line)
            line.settimeout(_PATIENCE)
            if self._context is not None:
                secure = self._context.wrap_socket(
                    plain, server_side=True, do_handshake_on_connect=False
                )
                self._exchange(plain, line := secure)
                secure.do_handshake()
            role = self._challenge(line)
            line.settimeout(None)
            while role and (message := receive(line, self._largest)) is not None:
                if message.kind == ASK:
                    try:
                        answer = self._answer(message)
                    except MloptError as error:
                        answer = _refusal(error, message.epoch)
                    send(line, answer)
                elif message.kind == TELL and role == _DRIVER:
                    self._told(message.header)
        except WireError as error:
            with contextlib.suppress(OSError):
                send(line, _refusal(error, 0))
        except OSError:
            pass
        finally:
            with self._changing:
                self._open.discard(line)
            line.close()
            if role == _DRIVER:
                self._left()

    def _exchange(self, plain: socket.socket, line: socket.socket) -> None:
        with self._changing:
            self._open.discard(plain)
            self._open.add(line)
            if self._closed:
                _break(line)

    def _challenge(self, line: socket.socket) -> bytes:
        """The role of who proves to know the secret; else nothing."""
        here = os.urandom(_NONCE)
        line.sendall(here)
        said = _exactly(line, _NONCE + 1 + _PROOF)
        there, role, proof = said[:_NONCE], said[_NONCE : _NONCE + 1], said[_NONCE + 1 :]
        text = here + there + role + self._member.encode()
        if not hmac.compare_digest(proof, _proof(self._secret, b"asks", text)):
            line.sendall(bytes(_PROOF))
            return b""
        line.sendall(_proof(self._secret, b"answers", text))
        return role


class Line:
    """A line to the door of one member, for one thread at a time.

    Raises
    ------
    WireError
        The two do not know the same secret, or do not mean the same member.
    OSError
        Nobody opens.
    """

    def __init__(
        self,
        member: str,
        address: Address,
        secret: bytes,
        *,
        driver: bool = False,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.socket = socket.create_connection(address, timeout=_PATIENCE)
        try:
            _tune(self.socket)
            if context is not None:
                self.socket = context.wrap_socket(self.socket)
            self._prove(member, secret, _DRIVER if driver else _ASKER)
            self.socket.settimeout(None)
        except BaseException:
            self.socket.close()
            raise

    def _prove(self, member: str, secret: bytes, role: bytes) -> None:
        there, here = _exactly(self.socket, _NONCE), os.urandom(_NONCE)
        text = there + here + role + member.encode()
        self.socket.sendall(here + role + _proof(secret, b"asks", text))
        proof = _exactly(self.socket, _PROOF)
        if not hmac.compare_digest(proof, _proof(secret, b"answers", text)):
            raise WireError(
                f"{member} was asked with another secret than its own: it is a member of "
                "another mesh, or not the one that was meant."
            )

    def end(self) -> None:
        """Break the line, whoever uses it; from any thread."""
        _break(self.socket)

    def close(self) -> None:
        """Give the line up; from the thread that uses it."""
        self.socket.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it was never open
            self.socket.close()


class Lines:
    """Lines to any number of members, opened as they are needed.

    Parameters
    ----------
    secret : bytes
    largest : int
        Bytes of the arrays of a message.
    context : ssl.SSLContext, optional
        Without it, lines are not encrypted.
    """

    def __init__(
        self, secret: bytes, largest: int, context: ssl.SSLContext | None = None
    ) -> None:
        self._secret, self._largest, self._context = secret, largest, context
        self._homes: dict[str, _Home] = {}
        self._changing = threading.Lock()
        self._closed = False

    def ask(
        self,
        member: str,
        address: Address,
        message: Message,
        into: Sequence[np.ndarray] | None = None,
    ) -> Answer:
        """Send a message and wait for the answer; raises what the refusal says.

        Raises
        ------
        MemberLostError
            The line cannot be opened, or broke before the answer.
        """
        packed = pack(message, self._largest)
        home = self._homes.get(member) or self._home_of(member)
        try:
            line = home.free.pop()
        except IndexError:
            line = self._open(home, member, address)
        answer = None
        try:
            send(line.socket, packed)
            answer = receive(line.socket, self._largest, into)
        except OSError as error:
            raise _lost(member, message.operation) from error
        finally:
            if answer is not None:
                home.free.append(line)
            else:  # half an answer may be waiting on it
                home.lines.discard(line)
                line.close()
        if answer is None:
            raise _lost(member, message.operation)
        if answer.kind == REFUSAL:
            kind = _REFUSALS.get(answer.operation, ClusterError)
            raise kind(answer.header.more.get("text", f"{member} refused."))
        return answer.header, answer.arrays

    def drop(self, member: str) -> None:
        """Break all lines to a member, those in use too: it is gone."""
        with self._changing:
            home = self._homes.pop(member, None)
        if home is not None:
            home.gone = True
            for line in list(home.lines):
                line.end()

    def close(self) -> None:
        """Break all lines; no more are opened."""
        with self._changing:
            self._closed = True
            members = list(self._homes)
        for member in members:
            self.drop(member)

    def _home_of(self, member: str) -> _Home:
        with self._changing:
            if self._closed:
                raise ClusterError("The mesh is closed: make another one.")
            return self._homes.setdefault(member, _Home())

    def _open(self, home: _Home, member: str, address: Address) -> Line:
        try:
            line = Line(member, address, self._secret, context=self._context)
        except OSError as error:
            raise MemberLostError(f"{member} cannot be reached: {error}.") from error
        home.lines.add(line)
        if home.gone:  # since we looked
            line.end()
        return line


class _Home:
    """The lines to one member: all, and those that nobody uses.

    Taken and given without a lock: `list.pop` and `append` are one step each. Lines that
    are given back after `drop` are in a list that nobody takes from any more.
    """

    def __init__(self) -> None:
        self.lines: set[Line] = set()
        self.free: list[Line] = []
        self.gone = False


def _lost(member: str, operation: str) -> MemberLostError:
    return MemberLostError(
        f"{member} was lost before it answered `{operation}`, which it may or may not have "
        "done: ask again with the same numbers where the service tells repeats apart."
    )


def _refusal(error: MloptError, epoch: int) -> Packed:
    # The error's own name where the asker knows it, that of its next of kin otherwise.
    names = (kind.__name__ for kind in type(error).__mro__)
    name = next((name for name in names if name in _REFUSALS), ClusterError.__name__)
    text = str(error)[:_LONGEST_TEXT]
    return pack(Message(REFUSAL, name, epoch, Header(more={"text": text})), 0)


def _proof(secret: bytes, who: bytes, text: bytes) -> bytes:
    return hmac.digest(secret, who + b"\0" + text, "sha256")


def _exactly(line: socket.socket, count: int) -> bytes:
    said = b""
    while len(said) < count:
        piece = line.recv(count - len(said))
        if not piece:
            raise ConnectionError("the line was closed before its first message")
        said += piece
    return said


def _tune(line: socket.socket) -> None:
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A machine that vanishes says no word of farewell. Not every system has these.
    for name, value in (
        ("TCP_KEEPIDLE", _SILENCE),
        ("TCP_KEEPINTVL", _SILENCE),
        ("TCP_KEEPCNT", _TRIES),
    ):
        if hasattr(socket, name):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _break(line: socket.socket) -> None:
    """Wake whoever reads or writes; only the thread that does may close."""
    with contextlib.suppress(OSError):
        # Not that of TLS, which would wait for the other end.
        socket.socket.shutdown(line, socket.SHUT_RDWR)


def _start(target: Callable[[], None], name: str) -> None:
    threading.Thread(target=target, name=name, daemon=True).start()
