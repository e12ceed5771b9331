/** The polynomial of CRC-32C, with its lowest bit first. */
const POLYNOMIAL = 0x82f63b78;

/** The checksums of each byte, of each byte followed by a zero byte, and so on, up to seven zero bytes: 256 entries each. */
const TABLE = createTable();

/**
 * Returns the CRC-32C of bytes, which Kafka wants for each record batch. It takes eight bytes a step (slicing-by-8,
 * Kounavis and Berry, 2005).
 */
export function crc32c(bytes: Uint8Array): number {
  const { buffer, byteOffset, byteLength } = bytes;
  const data = new DataView(buffer, byteOffset, byteLength);
  const lengthOfEights = byteLength - (byteLength % 8);
  let crc = -1;
  let at = 0;
  for (; at < lengthOfEights; at += 8) {
    crc ^= data.getInt32(at, true);
    const next = data.getInt32(at + 4, true);
    crc =
      entry(1792 + (crc & 0xff)) ^
      entry(1536 + ((crc >>> 8) & 0xff)) ^
      entry(1280 + ((crc >>> 16) & 0xff)) ^
      entry(1024 + (crc >>> 24)) ^
      entry(768 + (next & 0xff)) ^
      entry(512 + ((next >>> 8) & 0xff)) ^
      entry(256 + ((next >>> 16) & 0xff)) ^
      entry(next >>> 24);
  }
  for (; at < byteLength; at += 1) crc = entry((crc ^ data.getUint8(at)) & 0xff) ^ (crc >>> 8);
  return ~crc >>> 0;
}

function entry(index: number): number {
  return TABLE.getInt32(index * 4, true);
}

function createTable(): DataView {
  const table = new DataView(new ArrayBuffer(8 * 256 * 4));
  for (let byte = 0; byte < 256; byte += 1) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    table.setInt32(byte * 4, crc, true);
  }
  for (let index = 256; index < 8 * 256; index += 1) {
    const crc = table.getInt32((index - 256) * 4, true);
    table.setInt32(index * 4, (crc >>> 8) ^ table.getInt32((crc & 0xff) * 4, true), true);
  }
  return table;
}
