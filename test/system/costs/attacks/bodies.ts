import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { concatBytes } from '../../../../backend/src/protocol/bytes.js'
import { beefOf } from '../../../support/protocol/fake-chain.js'
import { varint } from '../../../support/protocol/raw-transaction.js'
import { type Attack, type HostileRequest, SUBMIT_HEADERS, submitting } from '../attack.js'

const MiB = 1024 * 1024
/** Of a body, as `MAX_BODY_BYTES` has it by default. */
const BODY = 72 * MiB

const POSTS = [
  '/submit',
  '/lookup',
  '/svc/gateway/metadata',
  '/svc/names/origins',
  '/svc/gateway/preview',
  '/arc-ingest',
  '/requestSyncResponse',
  '/requestForeignGASPNode',
]

function brotli(bytes: Uint8Array): Uint8Array {
  return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
}

const OFF_CHAIN = { ...SUBMIT_HEADERS, 'x-includes-off-chain-values': 'true' }

/** A small BEEF with values behind it that are on no chain. */
function withOffChainValues(beef: Uint8Array, zeros: number): Uint8Array {
  return concatBytes(varint(beef.length), beef, new Uint8Array(zeros))
}

/** Bodies that are larger than what they bring, or than what is sent of them. */
export function bodyAttacks({
  bytes = BODY,
  slowness = 200,
}: {
  bytes?: number
  /** Milliseconds between the chunks of a slow body. */
  slowness?: number
} = {}): Attack[] {
  const zeros = bytes - MiB
  return [
    {
      name: 'off-chain-zeros',
      title: `x-includes-off-chain-values with ${Math.round(zeros / MiB)} MiB of zeros`,
      prepare: ({ chain }) => {
        const beef = beefOf(chain.inscribe({ contentType: 'text/plain', body: Uint8Array.of(1) }))
        const body = withOffChainValues(beef, zeros)
        return () => ({ method: 'POST', path: '/submit', headers: OFF_CHAIN, body })
      },
      allowance: { requests: 16, connections: 16 },
      statuses: [200, 413, 503],
    },
    {
      name: 'off-chain-zeros-compressed',
      title: `the same ${Math.round(zeros / MiB)} MiB as brotli`,
      prepare: ({ chain }) => {
        const beef = beefOf(chain.inscribe({ contentType: 'text/plain', body: Uint8Array.of(2) }))
        const body = brotli(withOffChainValues(beef, zeros))
        const headers = { ...OFF_CHAIN, 'Content-Encoding': 'br' }
        return () => ({ method: 'POST', path: '/submit', headers, body })
      },
      allowance: { requests: 16, connections: 16 },
      statuses: [200, 413, 415, 503],
    },
    {
      name: 'unfinished-brotli',
      title: 'unfinished brotli bodies',
      prepare: () => {
        const whole = brotli(new Uint8Array(zeros))
        const headers = { ...SUBMIT_HEADERS, 'Content-Encoding': 'br' }
        const body = whole.subarray(0, whole.length - 1)
        return () => ({ method: 'POST', path: '/submit', headers, body, unfinished: true })
      },
      allowance: { requests: 25, connections: 25 },
      statuses: ['held', 413, 415, 503],
    },
    {
      name: 'finished-brotli',
      title: 'brotli bodies of zeros',
      prepare: () => {
        const body = brotli(new Uint8Array(zeros))
        return () => ({
          ...{ method: 'POST', path: '/submit', body },
          headers: { ...SUBMIT_HEADERS, 'Content-Encoding': 'br' },
        })
      },
      allowance: { requests: 60, connections: 60 },
      statuses: [400, 413, 415, 503],
    },
    {
      name: 'gzip-bombs',
      title: 'gzip bombs to every route that takes a body',
      prepare: () => {
        const body = gzipSync(Buffer.alloc(zeros))
        const headers = { ...SUBMIT_HEADERS, 'Content-Encoding': 'gzip', 'x-bsv-topic': 'tm_ordinals' }
        return (index): HostileRequest => {
          const path = POSTS[index % POSTS.length] ?? '/submit'
          return { method: 'POST', path, headers, body }
        }
      },
      allowance: { requests: 10 * POSTS.length, connections: 5 * POSTS.length },
      statuses: [400, 413, 415, 503],
    },
    {
      name: 'garbage-bodies',
      title: `${Math.round(zeros / MiB)} MiB that are no BEEF`,
      prepare: () => {
        const body = new Uint8Array(zeros).fill(0x5a)
        return () => submitting(body)
      },
      allowance: { requests: 16, connections: 16 },
      statuses: [400, 413, 503],
    },
    {
      name: 'slow-uploads',
      title: 'bodies that come slowly on many connections',
      prepare: () => {
        const body = new Uint8Array(Math.min(zeros, 4 * MiB))
        return () => ({ ...submitting(body), slow: { chunkBytes: 64 * 1024, everyMs: slowness } })
      },
      allowance: { requests: 600, connections: 500 },
      statuses: [400, 408, 413, 429, 503],
    },
    {
      name: 'unfinished-bodies',
      title: 'announced bodies of which 1 MiB comes',
      prepare: () => {
        const body = new Uint8Array(MiB)
        return () => ({ ...submitting(body), unfinished: true })
      },
      allowance: { requests: 500, connections: 500 },
      statuses: ['held', 413, 503],
    },
    {
      name: 'previews',
      title: 'previews of 1 MiB',
      prepare: () => {
        const body = new Uint8Array(Math.min(MiB, bytes)).fill(0x61)
        const headers = { 'Content-Type': 'text/html' }
        return () => ({ method: 'POST', path: '/svc/gateway/preview', headers, body })
      },
      allowance: { requests: 600, connections: 100 },
      statuses: [200, 413, 429, 503],
    },
  ]
}
