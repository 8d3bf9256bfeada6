import fc from 'fast-check'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { bytes, bytesOf } from '../../../test/support/protocol/arbitraries.js'
import { ADMIN_TOKEN } from '../host.js'
import { type FuzzRequest, get, postJson } from '../request.js'
import type { Prey } from '../world.js'
import { hostileHeaders } from './headers.js'
import { hostileJson, hostileText, inTarget, outpoints } from './text.js'
import { goodPaths } from './transactions.js'

type Requests = fc.Arbitrary<FuzzRequest[]>

/** Requests of peers, miners and operators, to routes that may not exist. */
export function overlayBodies(prey: Prey): Record<string, Requests> {
  const txid = fc.constantFrom(...prey.outpoints).map((outpoint) => outpoint.slice(0, 64))
  const valued = fc.oneof<fc.Arbitrary<unknown>[]>(
    hostileText,
    fc.constantFrom<unknown>(null, 0, -1, 2 ** 53, 1.5, [], {}, true),
    txid,
    outpoints(prey),
  )
  const shaped = (shape: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<string> =>
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record(shape, { requiredKeys: [] }).map((object) => JSON.stringify(object)),
      },
      hostileJson,
    )
  const sent = (
    target: fc.Arbitrary<string>,
    bodies: fc.Arbitrary<string>,
    header: string,
    values: fc.Arbitrary<string>,
  ): Requests =>
    fc.tuple(target, bodies, values, hostileHeaders).map(([path, body, value, headers]) => {
      const clean = value.replace(/[^\x20-\x7e]/g, '')
      return [
        postJson(path, body, [
          ...headers.filter(([name]) => name.toLowerCase() !== header.toLowerCase()),
          [header, clean],
        ]),
      ]
    })
  const topic = fc.oneof(fc.constantFrom('tm_names', 'tm_ordinals'), hostileText)
  const graph = { graphID: valued, txid: valued, outputIndex: valued, metadata: valued }
  const path = fc.oneof(
    fc.constantFrom('00', 'fe20a10600010100', 'fe20a1060001ffffffffff'),
    hostileText,
    bytes(60).map(toHex),
  )
  const what = fc.constantFrom(
    'block',
    'unblock',
    'blocked',
    'evictOutpoint',
    'startGASPSync',
    'health',
    '__proto__',
  )
  const operator = fc.oneof(
    { weight: 3, arbitrary: fc.constant(`Bearer ${ADMIN_TOKEN}`) },
    fc.constantFrom('Bearer', 'Bearer ', 'Bearer x', 'Basic eDp5', 'bearer null'),
    hostileText.map((text) => `Bearer ${text}`),
  )
  // Nothing that good requests ask for must be blocked.
  const blockable = fc.oneof<fc.Arbitrary<unknown>[]>(
    outpoints({ ...prey, outpoints: prey.own }),
    hostileText,
    fc.constantFrom<unknown>(null, 0, [], {}),
    bytesOf(32).map(toHex),
  )
  const orders = fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .record(
          { outpoint: blockable, sha256: blockable, name: blockable, reason: blockable },
          { requiredKeys: [] },
        )
        .map((object) => JSON.stringify(object)),
    },
    hostileJson,
  )
  const order = fc.tuple(fc.constantFrom(...prey.own), hostileText)
  const proof = fc
    .constantFrom(...prey.coins)
    .chain(({ txid: of }) =>
      goodPaths(of).map((bump) => JSON.stringify({ txid: of, merklePath: toHex(bump) })),
    )
  return {
    'sync requests of peers': sent(
      fc.constant('/requestSyncResponse'),
      shaped({ version: valued, since: valued, limit: valued }),
      'x-bsv-topic',
      topic,
    ),
    'nodes that peers ask for': sent(
      fc.constant('/requestForeignGASPNode'),
      shaped(graph),
      'x-bsv-topic',
      topic,
    ),
    'proofs of miners': sent(
      fc.constant('/arc-ingest'),
      fc.oneof(
        proof,
        shaped({ txid: fc.oneof(txid, valued), merklePath: fc.oneof(path, valued), blockHeight: valued }),
      ),
      'Authorization',
      hostileText,
    ),
    'the words of operators': sent(
      fc
        .tuple(what, fc.oneof({ weight: 4, arbitrary: fc.constant('') }, hostileText))
        .map(([route, rest]) => `/admin/${route}${rest === '' ? '' : `/${inTarget(rest)}`}`),
      orders,
      'Authorization',
      operator,
    ),
    'lists of what is blocked': fc
      .array(
        fc.tuple(
          fc.constantFrom('kind', 'limit', 'after'),
          fc.oneof(fc.constantFrom('name', 'content', '1', 'name:a'), hostileText.map(inTarget)),
        ),
        { maxLength: 4 },
      )
      .map((query) => [get(`/admin/blocked?${query.map((pair) => pair.join('=')).join('&')}`, OPERATOR)]),
    'what is blocked, and no longer': order.map(([outpoint, reason]) => [
      postJson('/admin/block', JSON.stringify({ outpoint, reason: `${reason}.` }), OPERATOR),
      get(`/content/${outpoint}`),
      get(`/svc/gateway/stream/${outpoint}`),
      get(`/svc/gateway/metadata/${outpoint}:-1`),
      postJson('/lookup', JSON.stringify({ service: 'ls_ordinals', query: { outpoint } })),
      postJson('/admin/unblock', JSON.stringify({ outpoint }), OPERATOR),
    ]),
  }
}

const OPERATOR: [string, string][] = [['Authorization', `Bearer ${ADMIN_TOKEN}`]]
