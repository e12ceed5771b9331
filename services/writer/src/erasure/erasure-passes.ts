import { ClickHouseError } from '@clickhouse/client';

/** A deletion that is due to be erased. */
export interface DueErasure {
  readonly workspace_id: string;
  readonly user_id: string;
  readonly deleted_version: number;
  readonly stored_ms: number;
}

/**
 * How many bytes of identifiers one pass may hold. ClickHouse accepts 128 KiB for a parameter and 1 MiB for a URL
 * (`http_max_field_value_size`, `http_max_uri_size`). Escaping may turn one byte into four in a list, and into twelve in
 * the URL.
 */
const IDENTIFIER_BYTES_MAX = 20 * 1_024;

/** Splits deletions into passes that ClickHouse accepts. */
export function passesOf<Deletion extends Pick<DueErasure, 'workspace_id' | 'user_id'>>(
  due: readonly Deletion[],
): Deletion[][] {
  const passes: Deletion[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const deletion of due) {
    const size = Buffer.byteLength(deletion.user_id) + Buffer.byteLength(deletion.workspace_id);
    if (bytes + size > IDENTIFIER_BYTES_MAX) {
      passes.push([]);
      bytes = 0;
    }
    passes.at(-1)?.push(deletion);
    bytes += size;
  }
  return passes;
}

/**
 * Erases a pass. When ClickHouse refuses it, erases its two halves separately, so that a user who cannot be erased does
 * not block the others.
 *
 * @returns how many users were erased
 * @throws errors that do not come from ClickHouse itself: it cannot be reached, so smaller passes would fail as well
 */
export async function eraseInHalves(
  pass: readonly DueErasure[],
  erase: (pass: readonly DueErasure[]) => Promise<void>,
  onFailure: (error: ClickHouseError) => void,
): Promise<number> {
  try {
    await erase(pass);
    return pass.length;
  } catch (error) {
    if (!(error instanceof ClickHouseError)) throw error;
    if (pass.length === 1) {
      onFailure(error);
      return 0;
    }
  }
  const middle = pass.length >> 1;
  const first = await eraseInHalves(pass.slice(0, middle), erase, onFailure);
  return first + (await eraseInHalves(pass.slice(middle), erase, onFailure));
}
