import { isIPv4, isIPv6 } from 'node:net';

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
