"""An answer is one write to its socket."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock, call

from mlopt.serving.protocol import Together


def test_head_and_body_are_one_write_and_none_is_lost_at_the_end() -> None:
    async def play() -> list[bytes]:
        inner = Mock()
        inner.is_closing.return_value = False
        transport = Together(inner, asyncio.get_running_loop())
        transport.write(b"head ")
        transport.write(b"body")
        await asyncio.sleep(0)
        transport.write(b"last")
        transport.close()
        assert inner.method_calls[-2:] == [call.write(b"last"), call.close()]
        await asyncio.sleep(0)
        return [one.args[0] for one in inner.write.call_args_list]

    assert asyncio.run(play()) == [b"head body", b"last"]
