import { z } from 'zod'
import { QueryError } from '../graph/errors.js'
import { attribute } from '../graph/listings.js'
import { ORIGIN } from '../graph/records.js'
import { decodeAddress } from '../protocol/address.js'
import { MEDIA_TYPE } from '../protocol/media-type.js'
import { isName } from '../protocol/mine-node.js'
import { PointerError, parseOutpoint } from '../protocol/outpoint.js'

const outpointText = z.string().transform((text, context) => {
  try {
    return parseOutpoint(text)
  } catch (error) {
    if (!(error instanceof PointerError)) throw error
    context.addIssue({ code: 'custom', message: error.message })
    return z.NEVER
  }
})

const nameText = z.string().refine(isName, 'a name must be 1 to 255 characters of a-z 0-9 -')
const domainText = z
  .string()
  .refine((text) => text === '' || isName(text), 'a prefix must be up to 255 characters of a-z 0-9 -')
/** The most outpoints that `{origins}` takes; a host may set fewer. */
export const MAX_ORIGINS = 1000
const history = z.boolean().default(false)
/** The most verified outpoints of a history that are taken, as each is compared with all of it. */
const MAX_KNOWN = 16
const known = z.array(outpointText).max(MAX_KNOWN).optional()
/** The length of a part of a history, in bytes of transactions. */
const maxBytes = z.int().min(1).optional()
/** Options of a query about one output. */
const one = { history, known, maxBytes }
/** The text after `<kind>:`. */
const after = (kind: string) =>
  z
    .string()
    .startsWith(`${kind}:`)
    .transform((text) => text.slice(kind.length + 1))

/** The events by which OpNS overlays index unspent outputs, each as the query that finds its output. */
const event = z.union([
  after('opns')
    .pipe(nameText)
    .transform((name) => ({ name, history: false })),
  after('mine')
    .pipe(domainText)
    .transform((node) => ({ node, history: false })),
  after('origin')
    .pipe(outpointText)
    .transform((tipOf) => ({ tipOf, history: false })),
])
/** The fields that their clients always send. An event has one output at most, so most of them change nothing. */
const eventQuery = z
  .strictObject({
    event,
    events: z.tuple([]).nullish(),
    spent: z.boolean().nullish(),
    join: z.unknown(),
    from: z.unknown(),
    limit: z.unknown(),
    rev: z.unknown(),
  })
  .partial({ join: true, from: true, limit: true, rev: true })
  .transform(({ event, spent }) => (spent === true ? { origins: [], after: undefined } : event))

const namesQuery = z.union([
  z.strictObject({ name: nameText, ...one }),
  z.strictObject({ origin: nameText, ...one }),
  z.strictObject({ mine: nameText, ...one }),
  z.strictObject({ node: domainText, ...one }),
  z.strictObject({ outpoint: outpointText, ...one }),
  z
    .strictObject({ domain: nameText, ...one })
    .transform(({ domain: name, ...others }) => ({ name, ...others })),
  eventQuery,
  z.strictObject({ origins: z.array(outpointText).max(MAX_ORIGINS), after: outpointText.optional() }),
  z.strictObject({
    prefix: domainText,
    limit: z.int().min(1).max(100).default(100),
    after: domainText.optional(),
  }),
])

const NAMES_FORMS =
  'ls_names takes {name} or {domain: name}, {origin: name}, {mine: name}, {node: prefix} and {outpoint: "<txid>_<vout>"}, each optionally with history: true, known: [outpoint…] (at most 16) and maxBytes, {event: "opns:<name>", "mine:<prefix>" or "origin:<outpoint>"}, {origins: [outpoint…], after} (at most 1000) and {prefix, limit, after} (limit 1 to 100)'

export type NamesQuery = z.output<typeof namesQuery>

/** @throws QueryError for a question of no known form. */
export function readNamesQuery(question: unknown): NamesQuery {
  const parsed = namesQuery.safeParse(question)
  if (!parsed.success) throw new QueryError(NAMES_FORMS, { cause: parsed.error })
  return parsed.data
}

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
const ordinalsQuery = z.union([
  z.strictObject({ outpoint: outpointText, seq: z.int().min(ORIGIN).optional() }),
  z.strictObject({ map: entries, ...page }).transform(({ map, ...rest }) => ({
    ...rest,
    attributes: map.map(([key, value]) => attribute.map(key, value)),
  })),
  z.strictObject({ parent: outpointText, ...page }).transform(({ parent, ...rest }) => ({
    ...rest,
    attributes: [attribute.parent(parent)],
  })),
  z
    .strictObject({ contentType: z.string().max(255).regex(MEDIA_TYPE), ...page })
    .transform(({ contentType, ...rest }) => ({
      ...rest,
      attributes: [attribute.contentType(contentType)],
    })),
  z.strictObject({ owner: address, ...page }).transform(({ owner, ...rest }) => ({
    ...rest,
    attributes: [attribute.owner(owner)],
  })),
])

/** A parsed question to `ls_ordinals`: one ordinal, or a page of those that have all of the attributes. */
export type OrdinalsQuery = z.output<typeof ordinalsQuery>

const ORDINALS_FORMS =
  'ls_ordinals takes {outpoint: "<txid>_<vout>", seq} (seq optional: -2, -1, 0, 1 …), and, with optional limit (1 to 100) and after (an outpoint), {map: {key: value, …}} (at most 16 entries), {parent: "<txid>_<vout>"}, {contentType: a media type} and {owner: address}'

/** @throws QueryError for a question of no known form. */
export function readOrdinalsQuery(question: unknown): OrdinalsQuery {
  const parsed = ordinalsQuery.safeParse(question)
  if (!parsed.success) throw new QueryError(ORDINALS_FORMS, { cause: parsed.error })
  return parsed.data
}
