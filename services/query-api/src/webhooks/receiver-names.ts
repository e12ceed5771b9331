import { type LookupAddress, promises } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

/** How long a DNS server may take for a first answer, in milliseconds, and how often it is asked; later ones may take longer. */
const ANSWER_MS_MAX = 2_000;
const TRIES = 2;

/** How many dots a name must have to be looked up as it is first: the default of resolv.conf. */
const DOTS_MIN = 1;

export interface ReceiverNamesOptions {
  /** The DNS servers to ask, each an address, perhaps with a port. Default: those of resolv.conf. */
  readonly servers?: readonly string[] | undefined;
  /** Default: `/etc/hosts`. */
  readonly hostsFile?: string;
  /** Default: `/etc/resolv.conf`. */
  readonly resolvConf?: string;
}

/**
 * Looks up the names of receivers: in the hosts file, then at DNS servers, with the search list of resolv.conf. `dns.lookup` is no
 * choice: it runs in the few threads that look-ups of ClickHouse and files share, and cannot be ended, so that a name whose DNS server
 * is silent would hold up everything else.
 */
export class ReceiverNames {
  readonly #options: ReceiverNamesOptions;

  constructor(options: ReceiverNamesOptions = {}) {
    this.#options = options;
  }

  /**
   * Returns all addresses of a name, those of IPv4 first.
   *
   * @throws {Error} when there are none, or no DNS server answers; the reason of the signal when that aborts
   */
  async find(name: string, signal: AbortSignal): Promise<readonly LookupAddress[]> {
    signal.throwIfAborted();
    // Read each time, without the threads: both are small, and change while the process runs.
    const { servers, hostsFile = '/etc/hosts', resolvConf = '/etc/resolv.conf' } = this.#options;
    const known = addressesInHosts(textOf(hostsFile), name);
    if (known.length > 0) return known;
    const resolver = new promises.Resolver({ timeout: ANSWER_MS_MAX, tries: TRIES });
    if (servers) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel);
    try {
      return await ask(resolver, name, searchedNames(textOf(resolvConf), name), signal);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}

/** @param searched the names to ask for in place of the one, until one has an address */
async function ask(
  resolver: promises.Resolver,
  name: string,
  searched: readonly string[],
  signal: AbortSignal,
): Promise<readonly LookupAddress[]> {
  let failure = '';
  for (const one of searched) {
    const answers = await Promise.allSettled([resolver.resolve4(one), resolver.resolve6(one)]);
    signal.throwIfAborted();
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length > 0) return found.map(asLookedUp);
    const codes = answers.flatMap((answer) => (answer.status === 'rejected' ? [String(answer.reason.code)] : []));
    const other = codes.find((code) => !NO_ADDRESS.includes(code));
    failure ||= other ?? '';
    // A server that can say nothing of this name may know the next one; one that is silent is not asked again.
    if (other && other !== 'ESERVFAIL') break;
  }
  if (failure === '') throw new Error(`the name ${name} has no address`);
  throw new Error(`the DNS servers did not tell the address of ${name} (${failure})`);
}

/** What DNS servers answer about a name that does not exist, or has no address of the kind. */
const NO_ADDRESS: readonly string[] = ['ENOTFOUND', 'ENODATA'];

function asLookedUp(address: string): LookupAddress {
  return { address, family: isIP(address) };
}

/** A file that is missing says nothing. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Returns the words of each line, without comments. */
function linesOf(text: string): string[][] {
  return text
    .split('\n')
    .map((line) => line.replace(/[#;].*/, '').trim())
    .filter((line) => line !== '')
    .map((line) => line.split(/\s+/));
}

function addressesInHosts(hosts: string, name: string): LookupAddress[] {
  const addresses = linesOf(hosts).flatMap(([address = '', ...names]) =>
    isIP(address) !== 0 && names.some((known) => known.toLowerCase() === name.toLowerCase()) ? [address] : [],
  );
  return [...new Set(addresses)].map(asLookedUp).sort((one, other) => one.family - other.family);
}

/** Returns the names to ask for in place of one: as resolv.conf (5) says of `search`, `domain` and `ndots`. */
function searchedNames(resolvConf: string, name: string): readonly string[] {
  if (name.endsWith('.')) return [name];
  let domains: readonly string[] = [];
  let dotsMin = DOTS_MIN;
  for (const [keyword, ...words] of linesOf(resolvConf)) {
    if (keyword === 'search') domains = words;
    if (keyword === 'domain') domains = words.slice(0, 1);
    const dots = keyword === 'options' && words.map((word) => /^ndots:(\d+)$/.exec(word)?.[1]).find(Boolean);
    if (dots) dotsMin = Number(dots);
  }
  const searched = domains.map((domain) => `${name}.${domain.replace(/\.$/, '')}`).filter((one) => !one.endsWith('.'));
  return name.split('.').length > dotsMin ? [name, ...searched] : [...searched, name];
}
