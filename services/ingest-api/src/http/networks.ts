import { isIPv4, isIPv6 } from 'node:net';
import { z } from 'zod';

/** Addresses that `TRUSTED_PROXIES` may name instead of listing them. */
const NAMED_NETWORKS: readonly string[] = ['loopback', 'linklocal', 'uniquelocal'];

/** An address, an address with the length of its network (`10.0.0.0/8`), or the name of a range. */
export const proxyNetwork = z
  .string()
  .refine(isProxyNetwork, `must hold addresses, networks such as 10.0.0.0/8, or ${NAMED_NETWORKS.join(', ')}`);

function isProxyNetwork(text: string): boolean {
  if (NAMED_NETWORKS.includes(text)) return true;
  const [address = '', length, ...rest] = text.split('/');
  const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : 0;
  if (bits === 0 || rest.length > 0) return false;
  return length === undefined || (/^[1-9]\d{0,2}$/.test(length) && Number(length) <= bits);
}

/** An IPv4 address, also as a socket that takes IPv6 shows it, and with the port that some proxies add. */
const IPV4 = /^(?:::ffff:)?(\d+\.\d+\.\d+\.\d+)(?::\d+)?$/i;

const GROUPS_OF_NETWORK = 3;
const GROUPS_OF_ADDRESS = 8;

/**
 * Returns the network of an address: the /24 of IPv4 and the /48 of IPv6, because whoever has one address there often has
 * all of them. It is no name of a workspace.
 *
 * @param address anything else than an address is of one network, too
 */
export function networkOf(address: string | undefined): string {
  const text = IPV4.exec(address ?? '')?.[1] ?? address ?? '';
  if (isIPv4(text)) return `${text.slice(0, text.lastIndexOf('.'))}.0/24`;
  if (!isIPv6(text)) return 'network unknown';
  const [head = [], tail = []] = text.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const tailGroups = tail.length + (tail.at(-1)?.includes('.') ? 1 : 0);
  const zeros = Math.max(0, GROUPS_OF_ADDRESS - head.length - tailGroups);
  const groups = [...head, ...(text.includes('::') ? Array<string>(zeros).fill('0') : []), ...tail];
  const network = groups.slice(0, GROUPS_OF_NETWORK).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/48`;
}
