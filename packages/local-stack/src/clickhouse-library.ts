import { dlopen, getRawPointer, toString as readCString } from 'node:ffi';
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { libchdbPath } from 'chdb/libchdb';
import { allowReplication, type InterserverAddress } from './clickhouse-replication.ts';
import { limitReadableFiles } from './readable-files.ts';

/** How `clickhouse local` runs. */
export interface ClickHouseLocal {
  /** The first is the program's name. */
  readonly args: readonly string[];
  /** The folders whose files it may read, where the system can limit that. */
  readonly folders: readonly string[];
  /** Where other servers fetch the parts of its replicated tables. Without it, these stay read-only. */
  readonly interserver?: InterserverAddress | undefined;
}

/**
 * Runs `clickhouse local` and returns when it has ended: the server's message when it did not start, or ended by itself. It blocks
 * the thread, and works once in a process.
 */
export function runClickHouseLocal({ args, folders, interserver }: ClickHouseLocal): string | undefined {
  const { functions: chdb } = dlopen(libchdbPath(), {
    chdb_set_signal_handlers_enabled: { return: 'void', arguments: ['i32'] },
    chdb_query_cmdline: { return: 'pointer', arguments: ['i32', 'pointer'] },
    chdb_result_error: { return: 'pointer', arguments: ['pointer'] },
  });
  // Node.js keeps its own signal handlers.
  chdb.chdb_set_signal_handlers_enabled(0);
  // Its function `file` reads every file that the process can read, and needs no right.
  if (!limitReadableFiles([...folders, dirname(realpathSync(libchdbPath()))]))
    console.error('This system cannot limit which files ClickHouse reads: docs/operate/secure.md#sql');
  if (interserver) allowReplication(interserver);
  const strings = args.map((arg) => Buffer.from(`${arg}\0`));
  const argv = new BigUint64Array([...strings.map(getRawPointer), 0n]);
  const result = chdb.chdb_query_cmdline(args.length, getRawPointer(argv));
  const error = result ? chdb.chdb_result_error(result) : 0n;
  return error ? (readCString(error) ?? 'unknown error') : undefined;
}

/**
 * Ends the process at once with the C library's `_exit`. `process.exit` would wait for the thread inside the library, and
 * would run the library's destructors, which crash.
 */
export function exitNow(code: number): void {
  const { functions: libc } = dlopen(null, { _exit: { return: 'void', arguments: ['i32'] } });
  libc._exit(code);
}
