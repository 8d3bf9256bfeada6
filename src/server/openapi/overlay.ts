import { z } from 'zod'
import { type Operation, STORE_ERRORS } from '../../gateway/http/operation.js'
import { nodeAnswer, nodeRequest, syncAnswer, syncRequest } from '../gasp/sync-messages.js'
import { notice, noticeAnswer } from '../routes/arc-ingest.js'
import {
  lookupBody,
  lookupDocumentationQuery,
  outputListShape,
  runningShape,
  steakShape,
  topicDocumentationQuery,
  topicsHeader,
} from '../routes/overlay-routes.js'

const OCTETS = ['application/octet-stream']
const DOCUMENTATION = { description: 'Its documentation.', types: ['text/markdown'] }
const RETRIED = 'The source of block headers did not answer, so no proof can be checked; try again.'
const STORE_FULL = 'The store has no space left.'
const optionalHeader = (description: string) => z.string().optional().describe(description)

/** What overlay clients and peers ask. */
export const OVERLAY_OPERATIONS: Operation[] = [
  {
    route: 'GET /listTopicManagers',
    id: 'topicManagers',
    tag: 'overlay',
    summary: 'The topics of this host',
    answer: { description: 'The topics, each with a line about it.', json: runningShape },
  },
  {
    route: 'GET /listLookupServiceProviders',
    id: 'lookupServices',
    tag: 'overlay',
    summary: 'The lookup services of this host',
    answer: { description: 'The services, each with a line about it.', json: runningShape },
  },
  {
    route: 'GET /getDocumentationForTopicManager',
    id: 'topicDocumentation',
    tag: 'overlay',
    summary: 'What a topic admits',
    query: topicDocumentationQuery,
    answer: DOCUMENTATION,
    errors: { NOT_FOUND: 'This host has no such topic.' },
  },
  {
    route: 'GET /getDocumentationForLookupServiceProvider',
    id: 'lookupDocumentation',
    tag: 'overlay',
    summary: 'The queries that a lookup service answers',
    query: lookupDocumentationQuery,
    answer: DOCUMENTATION,
    errors: { NOT_FOUND: 'This host has no such lookup service.' },
  },
  {
    route: 'POST /submit',
    id: 'submit',
    tag: 'overlay',
    summary: 'Submits a transaction to topics',
    description:
      'A transaction for `tm_names` is submitted to `tm_ordinals` as well: a mint belongs in both.',
    headers: z.object({
      'X-Topics': topicsHeader,
      'x-includes-off-chain-values': optionalHeader(
        'With `true`, the body is a varint, a BEEF of that many bytes, and off-chain values after it. No topic here reads those.',
      ),
    }),
    body: {
      description:
        'A BEEF, up to the size that the operator has set. Its last transaction is the submitted one.',
      types: OCTETS,
    },
    answer: {
      description: 'For each topic, which outputs it admitted, and which of the spent coins it keeps.',
      json: steakShape,
    },
    errors: {
      BAD_BODY:
        'X-Topics is not a list of topics of this host, the body is not a BEEF, or the transaction is invalid.',
      CONFLICT: 'It spends what an admitted transaction already spends.',
      TOO_LARGE:
        'The body, the off-chain values or the BEEF is over a limit: its transactions, the depth of unproven ones, their inputs and outputs, a script, or the blocks that its proofs lead to.',
      NOT_READY: `${RETRIED} Or too many submissions are queued, or this one could not be verified in time.`,
      STORE_FULL,
      ...STORE_ERRORS,
    },
  },
  {
    route: 'POST /lookup',
    id: 'lookup',
    tag: 'overlay',
    summary: 'Queries a lookup service',
    headers: z.object({
      'X-Aggregation': optionalHeader(
        'With `yes`, the answer is binary; one with a history, only if `Accept` asks for it.',
      ),
    }),
    body: { description: 'A service, and a query of a form that its documentation has.', json: lookupBody },
    answer: {
      description:
        'The matching outputs. In binary: their number (varint); for each its txid, index (varint), and context after its length (varint); and one BEEF with all of their transactions.',
      json: outputListShape,
      types: OCTETS,
    },
    errors: {
      BAD_BODY: 'The body has another form, there is no such service, or it does not know such a query.',
      TOO_LARGE: 'The body is over the limit.',
      BLOCKED: 'The operator has blocked the output. Lists leave it out.',
      ...STORE_ERRORS,
    },
  },
  {
    route: 'POST /arc-ingest',
    id: 'ingestProof',
    tag: 'overlay',
    summary: 'Delivers the merkle path of a transaction that this host has',
    description:
      'The callback of a transaction processor (ARC). Other fields are ignored. If the operator has set a token for it, it is sent as `Authorization: Bearer <token>`.',
    body: {
      description:
        'The transaction, its merkle path (BUMP, BRC-74) and the height of its block; up to 32 KiB.',
      json: notice,
    },
    answer: { description: 'The proof is stored.', json: noticeAnswer },
    errors: {
      BAD_BODY:
        'The body has another form, or the path proves nothing: another transaction, height or chain.',
      UNAUTHORIZED: 'The token is missing or wrong.',
      NOT_FOUND: 'This host does not have the transaction.',
      TOO_LARGE: 'The body is over 32 KiB.',
      NOT_READY: `${RETRIED} Or it does not know a block at that height yet.`,
      STORE_FULL,
      ...STORE_ERRORS,
    },
  },
  {
    route: 'POST /requestSyncResponse',
    id: 'offeredOutputs',
    tag: 'overlay',
    summary: 'The unspent outputs of a topic, for a peer that syncs',
    headers: z.object({ 'x-bsv-topic': z.string().describe('A topic, as `tm_names`.') }),
    body: {
      description: 'The lowest score, and the most outputs to return; the version is that of GASP.',
      json: syncRequest,
    },
    answer: {
      description:
        'The outputs in order of their scores, which are milliseconds since 1970: at most 10,000, unless more have the first score.',
      json: syncAnswer,
    },
    errors: {
      BAD_BODY: 'This host has no such topic, or the body has another form or version.',
      TOO_LARGE: 'The body is over 4 KiB.',
      ...STORE_ERRORS,
    },
  },
  {
    route: 'POST /requestForeignGASPNode',
    id: 'syncNode',
    tag: 'overlay',
    summary: 'A transaction of the graph behind an offered output, for a peer that syncs',
    body: {
      description: 'The offered output, and the output of its graph whose transaction is requested.',
      json: nodeRequest,
    },
    answer: {
      description: 'The transaction, and its merkle path (BUMP, BRC-74) if it is known to be mined.',
      headers: ['Content-Length'],
      json: nodeAnswer,
    },
    errors: {
      BAD_BODY: 'The body does not have the form that GASP gives it.',
      NOT_FOUND: 'The graph is not offered here, or the output is of no graph here.',
      TOO_LARGE: 'The body is over 4 KiB.',
      BLOCKED: 'The operator has blocked it.',
      ...STORE_ERRORS,
    },
  },
]
