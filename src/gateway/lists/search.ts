import { z } from 'zod'
import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import { decodeAddress } from '../../../backend/src/protocol/address.js'
import { nameMeant } from '../../../backend/src/protocol/mine-node.js'
import { formatOutpoint, readOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { address, domain, name, outpoint, txid } from '../http/schemas.js'
import { requireCaughtUp } from '../http/tree-progress.js'

/** The possible meanings of a text, each with what is needed to continue from there. */
export const searchResultShape = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('name'), name, outpoint: outpoint.describe('The origin of the name.') }),
  z.strictObject({
    kind: z.literal('unclaimed'),
    name: name.describe('A name that has not been mined.'),
    domain: domain.describe('The longest mined prefix.'),
  }),
  z.strictObject({ kind: z.literal('output'), outpoint }),
  z.strictObject({ kind: z.literal('transaction'), txid }),
  z.strictObject({ kind: z.literal('address'), address }),
])

export type SearchResult = z.output<typeof searchResultShape>

export interface SearchAnswer {
  results: SearchResult[]
  names: { name: string; outpoint: string }[]
}

/** The longest meaningful text: a name. */
export const MAX_SEARCH_LENGTH = 255
const NAMES = 10

/**
 * Interprets a text that somebody typed: a name or the start of names, an outpoint in either form, a txid, an address. Capitals
 * and surrounding spaces are ignored where they cannot matter. What this store does not have is not a result, and neither is
 * anything blocked.
 *
 * @throws AnswerError while the host catches up, if nothing is found and the text may be a name.
 */
export function searchFor({ store, progress }: GatewayParts, text: string): SearchAnswer {
  const asked = text.trim()
  const lower = asked.toLowerCase()
  const output = outputResult(store, lower)
  const transaction = transactionResult(store, lower)
  const name = nameMeant(asked)
  const claim = name === undefined ? undefined : nameResult(store, name)
  const names = name === undefined ? [] : store.names.byPrefix({ prefix: name, limit: NAMES })
  const isAddress = decodeAddress(asked) !== undefined
  const isUnknown = claim?.kind === 'unclaimed' && progress.isCatchingUp
  const others = [
    ...[output, transaction, isAddress && ({ kind: 'address', address: asked } as const)],
    isUnknown ? undefined : claim,
  ]
  if (name !== undefined && names.length === 0 && !others.some(Boolean)) requireCaughtUp(progress)
  return {
    results: others.flatMap((result) => result || []),
    names: names.map((each) => ({ name: each.name, outpoint: formatOutpoint(each.outpoint) })),
  }
}

function outputResult(store: GraphReads, text: string): SearchResult | undefined {
  const outpoint = readOutpoint(text)
  if (outpoint === undefined) return undefined
  return unlessBlocked((): SearchResult | undefined => {
    const isHeld =
      store.ordinals.output(outpoint) !== undefined ||
      store.names.genuineOrigins([outpoint]).length > 0 ||
      store.names.genuineNode(outpoint) !== undefined
    return isHeld ? { kind: 'output', outpoint: formatOutpoint(outpoint) } : undefined
  })
}

function transactionResult(store: GraphReads, text: string): SearchResult | undefined {
  if (!txid.safeParse(text).success) return undefined
  return store.transactions.has(text) ? { kind: 'transaction', txid: text } : undefined
}

function nameResult(store: GraphReads, text: string): SearchResult | undefined {
  return unlessBlocked((): SearchResult | undefined => {
    const origin = store.names.originOf(text)
    if (origin !== undefined) return { kind: 'name', name: text, outpoint: formatOutpoint(origin) }
    const node = store.names.longestNode(text)
    return node && { kind: 'unclaimed', name: text, domain: node.domain }
  })
}
