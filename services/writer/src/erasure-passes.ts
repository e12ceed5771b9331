import { ClickHouseError } from '@clickhouse/client';

/** A deletion that is due. */
export interface DueErasure {
  readonly workspace_id: string;
  readonly user_id: string;
  readonly deleted_version: number;
  readonly stored_ms: number;
}

/**
 * How many bytes of identifiers one pass may name. ClickHouse takes at most 128 KiB of a parameter and 1 MiB of a URL
 * (`http_max_field_value_size`, `http_max_uri_size`); escaped in a list, a byte may become four, and twelve in the URL.
 */
const IDENTIFIER_BYTES_MAX = 20 * 1_024;

/** Splits deletions into passes that ClickHouse takes. */
export function passesOf(due: readonly DueErasure[]): DueErasure[][] {
  const passes: DueErasure[][] = [];
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
 * Erases a pass. When ClickHouse refuses it, erases each half of it by itself, so that one user whom it cannot erase does
 * not keep the others.
 *
 * @returns how many users were erased
 * @throws errors other than ClickHouse's own: it cannot be reached, so that smaller passes would fail as well
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
