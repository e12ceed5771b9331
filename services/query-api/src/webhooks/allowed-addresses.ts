import { BlockList, isIP, isIPv4 } from 'node:net';

/** IPv4 networks that are not of the public internet: IANA's special-purpose registry, multicast, and what is reserved. */
const SPECIAL_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
] as const;

/** Of IPv6 only 2000::/3 is public, without these: protocols, documentation, and 6to4, which holds an address of IPv4. */
const PUBLIC_IPV6 = '2000::/3';
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'] as const;

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const one of networks) {
    const [address = '', bits] = one.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    list.addSubnet(address, Number(bits ?? (family === 'ipv4' ? 32 : 128)), family);
  }
  return list;
}

const special = listOf([...SPECIAL_IPV4, ...SPECIAL_IPV6]);
const publicIpv6 = listOf([PUBLIC_IPV6]);

/** Which addresses deliveries may connect to. */
export class AllowedAddresses {
  readonly #allowed: BlockList;

  /** @param networks allowed besides all public addresses, each as `WEBHOOK_ALLOW_NETWORKS` names it */
  constructor(networks: readonly string[] = []) {
    this.#allowed = listOf(networks);
  }

  /** Whether deliveries may connect to an address: it is public, or in one of the networks. An IPv4 address in IPv6 counts as itself. */
  has(address: string): boolean {
    const plain = address.split('%')[0] ?? '';
    const mapped = ipv4Of(plain);
    const family = isIPv4(mapped ?? plain) ? 'ipv4' : 'ipv6';
    const checked = mapped ?? plain;
    if (isIP(checked) === 0) return false;
    if (this.#allowed.check(checked, family)) return true;
    return family === 'ipv4'
      ? !special.check(checked, family)
      : publicIpv6.check(checked, family) && !special.check(checked, family);
  }
}

/** Returns the IPv4 address in an IPv6 address of the form `::ffff:…`. */
function ipv4Of(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  // The parser of addresses writes all forms of one address alike.
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical) ?? [];
  if (high === undefined || low === undefined) return undefined;
  const bytes = [high, low].flatMap((part) => [Number.parseInt(part, 16) >> 8, Number.parseInt(part, 16) & 255]);
  return bytes.join('.');
}
