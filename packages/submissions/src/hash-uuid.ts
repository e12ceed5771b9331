/** Returns a UUID (RFC 9562) of the first 32 digits of a hash, with its version and variant set. */
export function hashUuid(hex: string, version: 5 | 8): string {
  const variant = '89ab'[Number.parseInt(hex[16] as string, 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${version}${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
