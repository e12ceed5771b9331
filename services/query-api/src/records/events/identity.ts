import type { QueryContext, QueryRunner } from '../../store/store.ts';
import type { EventSelection } from './event-selection.ts';

/** Returns the context of queries that see whose the events of visitors are, if a selection asks for it and any visitor is linked. */
export async function withIdentity<Context extends QueryContext>(
  queryRunner: Pick<QueryRunner, 'hasLinks'>,
  { identity }: Pick<EventSelection, 'identity'>,
  context: Context,
): Promise<Context> {
  const isLinked = identity === 'linked' && (await queryRunner.hasLinks(context));
  return isLinked ? { ...context, isLinked } : context;
}
