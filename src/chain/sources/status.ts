import { z } from 'zod'

// What the parts that know the chain report, with the descriptions for `/openapi.json` and `/metrics`.

const count = z.int().nonnegative()
const time = count.describe('Milliseconds since 1970.')

const lastError = z.strictObject({ at: time, message: z.string() })
const lastErrorField = lastError
  .optional()
  .describe('The last failure since the start, even if it has been resolved.')

export const sourceStatus = z.strictObject({
  name: z.string().describe('The kind of the source, and the origin of its URL.'),
  state: z.enum(['ok', 'resting']).describe('`resting`: paused for a while after failures.'),
  requests: count.describe('Requests since the start.'),
  failures: count.describe('Requests without a usable answer.'),
  restingUntil: time.optional(),
  lastError: lastErrorField,
})

export const headersStatus = z.strictObject({
  height: count.optional().describe('The height of the last known block.'),
  hash: z.string().optional().describe('The hash of the last known block.'),
  time: count.optional().describe('The time of the last known block, in seconds since 1970.'),
  from: count.optional().describe('The height of the first known block.'),
  lastError: lastErrorField,
  sources: z.array(sourceStatus).optional(),
})

export const followStatus = z.strictObject({
  state: z.enum(['catching up', 'keeping up']).describe('Whether the host still catches up with the chain.'),
  ordinals: z
    .enum(['names', 'all', 'none'])
    .describe('The ordinals that are followed in addition to the tree.'),
  mints: count.describe('Mints admitted since the start by following the chain.'),
  transfers: count.describe('Transfers admitted since the start by following the chain.'),
  height: count.optional().describe('The height up to which all followed outputs were checked.'),
  found: count.optional().describe('The highest block with a match since the start.'),
  sweep: z
    .strictObject({
      asked: count.describe('Coins that the current sweep has checked.'),
      coins: count.describe('Coins that the current sweep checks, roughly.'),
    })
    .describe('The current sweep.'),
  unproven: count.describe('Transactions that wait for a proof.'),
  failures: count.describe('Failures to follow a coin since the start, counting every try.'),
  lastError: lastErrorField,
})

export const ancestorsStatus = z.strictObject({
  waiting: count.describe('Ordinals whose ancestors are waiting to be fetched.'),
  fetched: count.describe('Transactions fetched since the start.'),
  holes: count.describe('Ordinals whose ancestors are too many or not in any source. They are retried.'),
  lastError: lastErrorField,
})

export type LastError = z.output<typeof lastError>
export type SourceStatus = z.output<typeof sourceStatus>
export type HeadersStatus = z.output<typeof headersStatus>
export type FollowStatus = z.output<typeof followStatus>
export type AncestorsStatus = z.output<typeof ancestorsStatus>
