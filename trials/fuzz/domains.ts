import { type DnsServer, dnsServer, type TxtAnswer } from '../../test/support/server/dns-server.js'
import type { Environment } from '../../test/support/server/test-server.js'
import { OWN_HOST } from './request.js'
import type { Prey } from './world.js'

/** The DNS records of requested domains: for content that is here, for content that is not, and invalid ones. */
function domainsOf({ directories, outpoints, own }: Pick<Prey, 'directories' | 'outpoints' | 'own'>) {
  const [site = '', other = ''] = directories
  const [first = ''] = own
  return {
    'site.example': { records: [`ordfs=${site}`] },
    'www.site.example': { records: [['ord', 'fs=', `${first}:-1`]] },
    'bare.example': { records: ['v=spf1 -all', outpoints[1] ?? ''] },
    'step.example': { records: [`ORDFS=${first}:0`] },
    'far.example': { records: [`ordfs=${first}:99999999999999999999`] },
    'gone.example': { records: [`ordfs=${'ab'.repeat(32)}_0`] },
    'many.example': { records: Array.from({ length: 200 }, (_, at) => `ordfs=${at}`) },
    'split.example': { truncated: [`ordfs=${other}`] },
    'strange.example': {
      records: ['', '\u0000', 'ordfs=', 'ordfs=../..', `ordfs=${'9'.repeat(400)}`, '__proto__'],
    },
    'refused.example': { code: 'REFUSED' },
    'failed.example': { code: 'SERVFAIL' },
    'silent.example': 'silence',
    'garbage.example': 'garbage',
    'forged.example': { forged: `ordfs=${site}` },
    'misnamed.example': { misnamed: `ordfs=${site}` },
  } satisfies Record<string, TxtAnswer>
}

/** The names of these domains, and one that has no record. */
export const DOMAINS = [
  ...Object.keys(domainsOf({ directories: [], outpoints: [], own: [] })),
  'nothing.example',
]

/** A DNS server with these domains, and the settings of a host that asks it. */
export async function domainServer(prey: Prey): Promise<{ dns: DnsServer; env: Environment }> {
  const dns = await dnsServer()
  for (const [domain, answer] of Object.entries(domainsOf(prey))) dns.answers.set(`_ordfs.${domain}`, answer)
  return { dns, env: { CUSTOM_DOMAINS: 'true', DNS_SERVERS: dns.address, SERVICE_HOSTS: OWN_HOST } }
}
