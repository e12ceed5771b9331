import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

/** Holds what is inserted into a table while it is closed, or what ClickHouse responds to it. */
export function gateOf(table: string) {
  let opening: PromiseWithResolvers<void> | undefined;
  let holds: 'inserts' | 'responses' = 'inserts';
  let held = 0;
  return {
    /** How many it holds, or has held. */
    held: () => held,
    close: (what: typeof holds = 'inserts') => {
      opening = Promise.withResolvers<void>();
      holds = what;
    },
    open: () => {
      opening?.resolve();
      opening = undefined;
    },
    wrap: (client: ClickHouseClient): ClickHouseClient =>
      new Proxy(client, {
        get(target, name) {
          const member = Reflect.get(target, name) as unknown;
          if (name !== 'insert') return typeof member === 'function' ? member.bind(target) : member;
          return async (given: Parameters<ClickHouseClient['insert']>[0]) => {
            const own = given.table === table ? opening : undefined;
            const isAfter = holds === 'responses';
            if (own) held += isAfter ? 0 : 1;
            if (!isAfter) await own?.promise;
            const result = await target.insert(given);
            if (own && isAfter) held += 1;
            if (isAfter) await own?.promise;
            return result;
          };
        },
      }),
  };
}
