import type { Attack } from '../attack.js'
import { clientAttacks, HONEST_CLIENT } from './client.js'
import { crawlAttacks, HONEST_CRAWL } from './crawl.js'
import { HONEST_MINING, mineArcAttacks, mineIndexAttacks, mineWalletAttacks } from './mine.js'
import { HONEST_PUBLISHING, publishAttacks } from './publish.js'
import { HONEST_RESOLVING, headersAttacks, resolveAttacks } from './resolve.js'

/** Everything that servers are made to do here, each honest one first. */
export function allAttacks(): Attack[] {
  return [
    ...HONEST_RESOLVING,
    ...resolveAttacks(),
    ...headersAttacks(),
    ...resolveAttacks('verify'),
    HONEST_CLIENT,
    ...clientAttacks(),
    ...HONEST_MINING,
    ...mineIndexAttacks(),
    ...mineArcAttacks(),
    ...mineWalletAttacks(),
    HONEST_PUBLISHING,
    ...publishAttacks(),
    HONEST_CRAWL,
    ...crawlAttacks(),
  ]
}
