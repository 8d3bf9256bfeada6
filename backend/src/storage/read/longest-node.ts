import type { NodeRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'

/** The lookups that it needs. */
interface Domains {
  /** The greatest domain of a node that sorts at or before a bound. */
  lastDomain(bound: string): Promise<string | undefined>
  liveNode(domain: string): Promise<Outpoint | undefined>
}

/** See `NamesReader.longestNode`. */
export async function longestNode(domains: Domains, name: string): Promise<NodeRecord | undefined> {
  // The greatest domain that sorts at or before the name is its longest mined prefix, or shares that prefix with it: in a
  // tree that holds all its prefixes, the shared prefix is itself a domain, and the longest. If it is not, try the next.
  for (let bound = name; ; ) {
    const last = await domains.lastDomain(bound)
    if (last === undefined) return undefined
    const domain = sharedPrefix(last, name)
    const outpoint = await domains.liveNode(domain)
    if (outpoint !== undefined) return { outpoint, domain }
    if (domain === last) return undefined
    bound = domain
  }
}

function sharedPrefix(a: string, b: string): string {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return a.slice(0, length)
}
