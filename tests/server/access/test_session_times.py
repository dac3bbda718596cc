"""How long a login, a link and a way back last, at the service itself: the moments are given, nobody waits."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

import recognised
from noisescale_server.services.access import people, sessions
from noisescale_server.services.access.access import LOCAL
from noisescale_server.services.access.sessions import Secret, WayBack
from noisescale_server.services.platform.errors import PersonNotFound
from noisescale_server.storage.access.tables import AuditRow, LoginAttempt, Person, WebSession

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
async def person(session: AsyncSession) -> UUID:
    return await people.add(session, LOCAL, name="Ada", email=None, is_administrator=False)


async def is_known(session: AsyncSession, cookie: Secret, at: datetime) -> bool:
    found = await recognised.of_cookie(session, cookie, now=at)
    return found is not None


async def seen_at(session: AsyncSession) -> datetime:
    query = select(WebSession.last_seen_at)
    found = (await session.scalars(query)).one()
    assert isinstance(found, datetime)
    return found


async def entries(session: AsyncSession) -> list[tuple[str, dict[str, str]]]:
    rows = await session.execute(select(AuditRow.action, AuditRow.details).order_by(AuditRow.id))
    return [(action, details) for action, details in rows]


class TestALogin:
    async def test_twelve_hours_without_a_look_end_it_and_not_a_second_less(
        self, session: AsyncSession, person: UUID
    ) -> None:
        cookie = await sessions.log_in(session, person, now=NOW, how="link")
        other = await sessions.log_in(session, person, now=NOW, how="link")

        assert await is_known(session, cookie, NOW + 12 * HOUR - SECOND)
        assert not await is_known(session, other, NOW + 12 * HOUR)

    async def test_each_look_gives_it_another_twelve_hours_until_seven_days_are_over(
        self, session: AsyncSession, person: UUID
    ) -> None:
        cookie = await sessions.log_in(session, person, now=NOW, how="link")

        looks = [await is_known(session, cookie, NOW + hours * HOUR) for hours in range(11, 7 * 24, 11)]

        assert looks == [True] * 15
        assert await is_known(session, cookie, NOW + 7 * 24 * HOUR - SECOND)
        assert not await is_known(session, cookie, NOW + 7 * 24 * HOUR)

    async def test_a_look_is_written_down_once_a_minute(self, session: AsyncSession, person: UUID) -> None:
        cookie = await sessions.log_in(session, person, now=NOW, how="link")

        await recognised.of_cookie(session, cookie, now=NOW + 59 * SECOND)
        early = await seen_at(session)
        await recognised.of_cookie(session, cookie, now=NOW + MINUTE)
        late = await seen_at(session)

        assert (early, late) == (NOW, NOW + MINUTE)

    async def test_it_is_the_persons_who_logged_in_and_is_written_down(
        self, session: AsyncSession, person: UUID
    ) -> None:
        cookie = await sessions.log_in(session, person, now=NOW, how="link")

        found = await recognised.of_cookie(session, cookie, now=NOW)

        assert found is not None
        assert (found.kind, found.person_id, found.name) == ("person", person, "Ada")
        assert ("logged in", {"how": "link"}) in await entries(session)

    async def test_nobody_logs_in_who_is_not_there_or_was_disabled(self, session: AsyncSession, person: UUID) -> None:
        (await session.get_one(Person, person)).disabled_at = NOW
        await session.flush()

        assert [await sessions.log_in(session, one, now=NOW, how="link") for one in (uuid4(), person)] == [None, None]

    async def test_whoever_is_disabled_is_known_no_more(self, session: AsyncSession, person: UUID) -> None:
        cookie = await sessions.log_in(session, person, now=NOW, how="link")
        (await session.get_one(Person, person)).disabled_at = NOW
        await session.flush()

        assert not await is_known(session, cookie, NOW)

    async def test_a_login_sweeps_out_what_has_run_out(self, session: AsyncSession, person: UUID) -> None:
        await sessions.log_in(session, person, now=NOW - 8 * 24 * HOUR, how="link")
        await sessions.new_link(session, LOCAL, person, now=NOW - 2 * HOUR)

        await sessions.log_in(session, person, now=NOW, how="link")

        counts = [await session.scalar(select(func.count()).select_from(one)) for one in (WebSession, LoginAttempt)]
        assert counts == [1, 0]

    async def test_logging_out_ends_this_browsers_alone(self, session: AsyncSession, person: UUID) -> None:
        mine, other = [await sessions.log_in(session, person, now=NOW, how="link") for _ in "ab"]

        await sessions.log_out(session, mine)

        assert [await is_known(session, one, NOW) for one in (mine, other)] == [False, True]

    def test_its_secret_holds_256_bits_and_is_not_printed(self) -> None:
        secret = Secret.new()

        assert len(secret.text) == 43
        assert len(secret.digest) == 32
        assert secret.text not in repr(secret)


class TestALink:
    async def test_it_lasts_an_hour(self, session: AsyncSession, person: UUID) -> None:
        in_time, late = [await sessions.new_link(session, LOCAL, person, now=NOW) for _ in "ab"]

        assert await sessions.take_link(session, in_time, now=NOW + HOUR - SECOND) == person
        assert await sessions.take_link(session, late, now=NOW + HOUR + SECOND) is None

    async def test_it_is_taken_once(self, session: AsyncSession, person: UUID) -> None:
        link = await sessions.new_link(session, LOCAL, person, now=NOW)

        assert [await sessions.take_link(session, link, now=NOW) for _ in "ab"] == [person, None]

    async def test_it_is_for_somebody_and_is_written_down(self, session: AsyncSession, person: UUID) -> None:
        await sessions.new_link(session, LOCAL, person, now=NOW)

        assert ("login link made", {"person": str(person)}) in await entries(session)
        with pytest.raises(PersonNotFound):
            await sessions.new_link(session, LOCAL, uuid4(), now=NOW)


class TestAWayBack:
    WAY = WayBack("the nonce", "the verifier", "/runs")

    async def test_what_was_kept_comes_back_once_within_ten_minutes(self, session: AsyncSession) -> None:
        state, late = Secret.new(), Secret.new()
        for one in (state, late):
            await sessions.keep_way_back(session, one, self.WAY, now=NOW)

        found = [await sessions.take_way_back(session, state, now=NOW + 10 * MINUTE - SECOND) for _ in "ab"]

        assert found == [self.WAY, None]
        assert await sessions.take_way_back(session, late, now=NOW + 10 * MINUTE + SECOND) is None

    async def test_a_link_is_no_way_back_and_a_way_back_no_link(self, session: AsyncSession, person: UUID) -> None:
        link, state = await sessions.new_link(session, LOCAL, person, now=NOW), Secret.new()
        await sessions.keep_way_back(session, state, self.WAY, now=NOW)

        assert await sessions.take_way_back(session, link, now=NOW) is None
        assert await sessions.take_link(session, state, now=NOW) is None
