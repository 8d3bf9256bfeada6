import { z } from 'zod'
import { NAME_PATTERN } from '../../../backend/src/protocol/mine-node.js'
import { decodedPointer, OUTPOINT_PATTERNS } from '../../../backend/src/protocol/outpoint.js'
import { AnswerError } from './errors.js'

// Shapes that several routes share. Those with an id are components of the OpenAPI document.

export const outpoint = z
  .string()
  .regex(OUTPOINT_PATTERNS.written)
  .meta({ id: 'Outpoint', description: '`<txid>_<vout>`.' })

/** Only for documentation: `parseOutpoint` reads it, and its error has its own code. */
export const askedOutpoint = z.string().meta({
  id: 'AskedOutpoint',
  pattern: OUTPOINT_PATTERNS.asked.source,
  description: '`<txid>_<vout>`, `<txid>.<vout>` or `<txid>i<vout>`, hex in either case.',
})

/** Only for documentation: `parseContentReference` reads it, and its errors have their own codes. */
export const askedReference = z.string().meta({
  id: 'AskedReference',
  pattern: OUTPOINT_PATTERNS.reference.source,
  description:
    '`<txid>_<vout>`, `<txid>.<vout>`, `<txid>i<vout>`, or `<txid>` for the first output with content. Append `:<sequence>` to select a step of the ordinal: 0 and up, `-1` for the current one, `-2` for the origin.',
})

/** The pointer in a path that is read as sent: all behind its first segment, decoded. */
export function pointerIn({ path }: { path: string }): string {
  return decodedPointer(path.slice(path.indexOf('/', 1) + 1))
}

/** The most outpoints in a list if each takes several reads, and if each takes one. */
export const MAX_ASKED = { records: 100, reads: 1000 }

export const name = z
  .string()
  .regex(NAME_PATTERN)
  .meta({ id: 'Name', description: '1 to 255 characters from a set in which no two names look alike.' })

export function badName(): AnswerError {
  return new AnswerError('BAD_NAME', 'a name must be 1 to 255 characters of a-z 0-9 -')
}

export const domain = z
  .string()
  .refine((text) => text === '' || NAME_PATTERN.test(text))
  .meta({
    id: 'Domain',
    pattern: NAME_PATTERN.source.replace('{1,', '{0,'),
    description: 'The prefix that a node stands for; empty for the root.',
  })

export const map = z.record(z.string(), z.unknown()).meta({
  id: 'Map',
  description: 'MAP metadata: strings and lists of strings, up to 64 KiB or the limit set by the host.',
})

export const mapTruncated = z
  .literal(true)
  .meta({ id: 'MapTruncated', description: 'Present if `map` is incomplete because of its size limit.' })

export const text = z.string().min(1)
export const optionalText = (description: string) => z.string().optional().describe(description)
export const count = z.int().nonnegative()
export const txid = z.string().regex(/^[0-9a-f]{64}$/)
export const address = text.describe('The address of the owner, for P2PKH locking scripts.')
export const blockHeight = count.describe('The height of the block that contains it.')

export const asOf = z
  .strictObject({ height: count, hash: txid.optional() })
  .meta({ id: 'AsOf', description: 'The block up to which this host has followed the tree of names.' })

/** The progress of a host that has not followed the tree to its end yet; unknown values are missing. */
export const catchUpProgress = z
  .strictObject({
    height: count.optional().describe('The highest block with a match so far.'),
    chainHeight: count.optional().describe('The height of the chain.'),
    asked: count.optional().describe('The outputs that the first sweep has checked.'),
    coins: count.optional().describe('The outputs that it has to check, as far as is known.'),
  })
  .meta({ id: 'CatchUpProgress', description: 'How far the host is, with `NOT_CAUGHT_UP`.' })

const errorFields = {
  error: text.describe('A human-readable sentence.'),
  code: z.string().describe('A machine-readable code.'),
  asOf: asOf.optional(),
  progress: catchUpProgress.optional(),
  origins: z
    .record(askedOutpoint, z.literal(true))
    .optional()
    .describe('With `NOT_CAUGHT_UP` to a list of outpoints: those that are genuine.'),
  offset: count.optional().describe('With `BAD_DIRECTORY`: the first byte that is wrong.'),
}
const overlayErrorFields = {
  ...errorFields,
  status: z.literal('error'),
  message: z.string().describe('The same as `error`, in the field that overlay clients read.'),
}

/** The bodies of errors (`docs/spec/http.md`, Errors). */
export const errorBodies = {
  Error: z.strictObject(errorFields).meta({ id: 'Error' }),
  OverlayError: z
    .strictObject(overlayErrorFields)
    .meta({ id: 'OverlayError', description: 'An error in the form that overlay clients expect.' }),
  ConflictError: z
    .strictObject({ ...overlayErrorFields, txid: txid.describe('The admitted transaction.') })
    .meta({
      id: 'ConflictError',
      description:
        'An error in the form that overlay clients expect, with the admitted transaction that it conflicts with.',
    }),
}

/** A whole number in a query string: digits, from 1 to `most`. */
export function wholeNumber({ most, usual }: { most: number; usual: number }) {
  return number({ least: 1, most }).default(usual)
}

/** A position to continue from in a query string: digits, from 0. */
export function position({ most = Number.MAX_SAFE_INTEGER }: { most?: number } = {}) {
  return number({ least: 0, most }).optional()
}

/** A number in a query string, as JSON would write it. */
export function number({ least, most }: { least: number; most: number }) {
  return z
    .string()
    .regex(/^(?:0|[1-9]\d{0,15})$/)
    .transform(Number)
    .pipe(z.int().min(least).max(most))
}

/**
 * Reads a value of a request.
 *
 * @param refusal The error message, or a function from issues to an error.
 * @throws AnswerError (`BAD_BODY`) if the schema does not match, or the error from `refusal`.
 */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  refusal: string | ((issues: z.core.$ZodIssue[]) => Error),
): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw typeof refusal === 'string' ? new AnswerError('BAD_BODY', refusal) : refusal(result.error.issues)
}

/** As {@link validate}, for a body that is a list: too long a list is `TOO_LARGE`, whatever else is wrong. */
export function validateList<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  refusal: string,
): z.output<Schema> {
  return validate(schema, value, (issues) => {
    const [list] = listsTooLong(issues)
    return list === undefined
      ? new AnswerError('BAD_BODY', refusal)
      : new AnswerError('TOO_LARGE', `a list may have at most ${list.maximum} entries`)
  })
}

/** Lists with too many entries, including those in any form of a union. */
function listsTooLong(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssueTooBig[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'invalid_union') return issue.errors.flatMap(listsTooLong)
    return issue.code === 'too_big' && issue.origin === 'array' ? [issue] : []
  })
}

export const txidParams = z.object({
  txid: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/)
    .describe('A txid, hex in either case.'),
})

/** The txid in a path, in lower case. @throws AnswerError `BAD_OUTPOINT` */
export function readTxid(params: unknown): string {
  const message = 'the path must have a txid, 64 characters of hex'
  return validate(txidParams, params, () => new AnswerError('BAD_OUTPOINT', message)).txid.toLowerCase()
}
