import { isIP } from 'node:net';
import { Problem } from './problem.ts';

/** Checks the `Host` of a request. @throws {Problem} `host_not_allowed` */
export type HostCheck = (host: string | undefined) => void;

/**
 * Returns a check of the `Host` header. A web page of any site can make its own name resolve to this machine and then
 * read what is served here without a key; the browser still sends that name.
 *
 * An IP address is always allowed: it was not resolved. So are requests without a host, which browsers do not send.
 *
 * @param names that the service may be reached by, without ports; `undefined`: any
 */
export function createHostCheck(names: readonly string[] | undefined): HostCheck {
  if (names === undefined) return () => undefined;
  const allowed = new Set(names.map((name) => name.toLowerCase()));
  return (host) => {
    if (host === undefined || host === '') return;
    const name = nameOf(host);
    if (allowed.has(name) || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return;
    const detail =
      'This service is not reached by the name in the header Host. Use its address, or let the operator add the name to ALLOWED_HOSTS.';
    throw new Problem('host_not_allowed', detail);
  };
}

/** Returns the name of a host in lower case, without its port and the dot of a complete name. */
function nameOf(host: string): string {
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}
