import { useState } from 'preact/hooks';
import { getJson, idOf, type OrganizationUserPage, type UserOrganizationPage } from './base/base.ts';
import { apiPathOf, ENTITY_KINDS, type EntityProps } from './entity-kinds.ts';
import { EntityLink, LoadState, Time, useLoad } from './parts/parts.ts';

const LIMIT = 12;

/** The organizations of a user, or the users of an organization, a page at a time. */
export function EntityMembers(entity: EntityProps) {
  const { members, membersTitle } = ENTITY_KINDS[entity.path];
  /** The cursors of the pages up to this one. */
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const query = new URLSearchParams({
    limit: String(LIMIT),
    ...(cursors.length > 0 && { cursor: cursors.at(-1) ?? '' }),
  });
  const loaded = useLoad(query.toString(), (signal) =>
    getJson<UserOrganizationPage | OrganizationUserPage>(`${apiPathOf(entity)}/${members}?${query}`, signal),
  );
  const { data, isLoading } = loaded;
  const next = data?.nextCursor ?? null;
  return (
    <section aria-labelledby="members">
      <h2 id="members">{membersTitle}</h2>
      {data?.results.length === 0 && <p class="muted">None.</p>}
      <ul class="members-page">
        {data?.results.map((member) => (
          <li key={idOf(member)}>
            <EntityLink path={members} id={idOf(member)} />
            <span class="muted">
              last seen <Time value={member.lastSeenAt} />
            </span>
          </li>
        ))}
      </ul>
      <LoadState loaded={loaded} status={(cursors.length > 0 || next !== null) && `Page ${cursors.length + 1}.`} />
      {(cursors.length > 0 || next !== null) && (
        <div class="bar">
          <button
            type="button"
            disabled={cursors.length === 0 || isLoading}
            onClick={() => setCursors(cursors.slice(0, -1))}
          >
            Previous {members}
          </button>
          <button
            type="button"
            disabled={next === null || isLoading}
            onClick={() => setCursors([...cursors, next ?? ''])}
          >
            Next {members}
          </button>
        </div>
      )}
    </section>
  );
}
