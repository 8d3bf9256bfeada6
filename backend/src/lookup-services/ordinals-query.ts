import { z } from 'zod'
import { attribute } from '../graph/attributes.js'
import { ORIGIN } from '../graph/graph-store.js'
import { QueryError } from '../graph/query-error.js'
import { decodeAddress } from '../protocol/address.js'
import { outpointText } from './outpoint-text.js'

const page = { limit: z.int().min(1).max(100).default(100), after: outpointText.optional() }
const address = z.string().transform((text, context) => {
  const owner = decodeAddress(text)
  if (owner !== undefined) return owner
  context.addIssue({ code: 'custom', message: 'must be a P2PKH address of main or test' })
  return z.NEVER
})
/** Every entry is a look-up of its own. */
const MAX_ENTRIES = 16
/** Not `z.record`, which leaves out a key `__proto__`. */
const entries = z
  .custom<Record<string, string>>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  )
  .transform((map) => Object.entries(map))
  .pipe(
    z
      .array(z.tuple([z.string(), z.string()]))
      .min(1)
      .max(MAX_ENTRIES),
  )
const query = z.union([
  z.strictObject({ outpoint: outpointText, seq: z.int().min(ORIGIN).optional() }),
  z.strictObject({ map: entries, ...page }).transform(({ map, ...rest }) => ({
    ...rest,
    attributes: map.map(([key, value]) => attribute.map(key, value)),
  })),
  z.strictObject({ parent: outpointText, ...page }).transform(({ parent, ...rest }) => ({
    ...rest,
    attributes: [attribute.parent(parent)],
  })),
  z.strictObject({ contentType: z.string().max(255), ...page }).transform(({ contentType, ...rest }) => ({
    ...rest,
    attributes: [attribute.contentType(contentType)],
  })),
  z.strictObject({ owner: address, ...page }).transform(({ owner, ...rest }) => ({
    ...rest,
    attributes: [attribute.owner(owner)],
  })),
])

/** A question to `ls_ordinals`, read: one ordinal, or a page of those that have all of the traits. */
export type OrdinalsQuery = z.output<typeof query>

const FORMS =
  'ls_ordinals takes {outpoint: "<txid>_<vout>", seq} (seq optional: -2, -1, 0, 1 …), and, with optional limit (1 to 100) and after (an outpoint), {map: {key: value, …}} (at most 16 entries), {parent: "<txid>_<vout>"}, {contentType} and {owner: address}'

/** @throws QueryError for a question of no known form. */
export function readOrdinalsQuery(asked: unknown): OrdinalsQuery {
  const parsed = query.safeParse(asked)
  if (!parsed.success) throw new QueryError(FORMS, { cause: parsed.error })
  return parsed.data
}
