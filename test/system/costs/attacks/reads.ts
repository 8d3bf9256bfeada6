import { concatBytes, toHex, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { COVENANT_LIMITS } from '../../../../backend/src/protocol/mint.js'
import {
  type FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { pick } from '../../../support/protocol/transactions.js'
import { type Attack, type Fixture, type HostileRequest, postingJson } from '../attack.js'

const MiB = 1024 * 1024

/** An ordinal that lives so many steps; each says what `said` gives. */
async function livedOrdinal(
  { chain, admit }: Fixture,
  steps: number,
  said: (step: number) => Uint8Array,
): Promise<FakeTransaction[]> {
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 5, lockingScript: p2pkh(0) }] })
  let before = coin
  const life: FakeTransaction[] = []
  for (let step = 0; step <= steps; step++) {
    const outputs = [{ satoshis: 1, lockingScript: said(step) }]
    const next = chain.spend({ inputs: [{ transaction: before, vout: 0 }], outputs })
    await admit(next, step === 0 ? [coin] : [])
    life.push(next)
    before = next
  }
  return life
}

/** A directory of `bytes`, with entries as small as they can be, and one that leads on. */
function directory(bytes: number, [name, pointer]: [string, string], salt: string): Uint8Array {
  const entries = [`"${name}":"${pointer}"`, `"salt":"${salt}"`]
  for (let length = 200, at = 0; length < bytes; at++) {
    const entry = `"${at.toString(36)}":""`
    length += entry.length + 1
    entries.push(entry)
  }
  return utf8(`{${entries.join(',')}}`)
}

const transfer = (step: number): Uint8Array =>
  step === 0 ? inscriptionScript({ contentType: 'text/plain', body: utf8('old') }) : p2pkh(step)

/** Reads that make the store or an answer large. */
export function readAttacks({
  steps = 20_000,
  chunks = 20_000,
  names = 2000,
  directoryBytes = MiB,
}: Partial<Record<'steps' | 'chunks' | 'names' | 'directoryBytes', number>> = {}): Attack[] {
  return [
    {
      name: 'provenance',
      title: `provenance of an ordinal of ${steps} steps`,
      async prepare(fixture) {
        const life = await livedOrdinal(fixture, steps, transfer)
        return () => ({ path: `/svc/gateway/provenance/${life[0]?.outpoint(0)}` })
      },
      allowance: { requests: 8, connections: 8 },
      statuses: [200, 429, 503],
    },
    {
      name: 'metadata-history',
      title: `metadata of an ordinal of ${steps} steps that all say something, each step once`,
      async prepare(fixture) {
        const life = await livedOrdinal(fixture, steps, (step) =>
          concatBytes(transfer(step), mapTail({ [`key ${step % 500}`]: String(step) })),
        )
        return (index) => ({
          path: `/svc/gateway/metadata/${life[0]?.outpoint(0)}:${(index * 37) % steps}`,
        })
      },
      allowance: { requests: 6000, connections: 100 },
      statuses: [200, 429, 503],
    },
    {
      name: 'streams',
      title: `ranges of a stream of ${chunks} chunks`,
      async prepare(fixture) {
        const life = await livedOrdinal(fixture, chunks, (step) =>
          inscriptionScript({
            contentType: step === 0 ? 'video/mp4' : 'gw/stream',
            body: utf8(`chunk ${step} `.repeat(20)),
          }),
        )
        const path = `/svc/gateway/stream/${life[0]?.outpoint(0)}`
        const ranges = ['bytes=-1', 'bytes=0-', 'bytes=1000000-1000001', 'bytes=-500000']
        return (index) => ({ path, headers: { Range: pick(ranges, index) } })
      },
      allowance: { requests: 600, connections: 50 },
      statuses: [200, 206, 416, 429, 503],
    },
    {
      name: 'directories',
      title: `paths through eight directories of ${Math.round(directoryBytes / 1024)} KiB`,
      async prepare({ chain, admit }) {
        let lead: [string, string] = ['d', '']
        let root = ''
        for (let level = 8; level > 0; level--) {
          const body = directory(directoryBytes, lead, String(level))
          const file = chain.inscribe({ contentType: 'ord-fs/json', body })
          await admit(file)
          root = file.outpoint(0)
          lead = ['d', root]
        }
        return (index) => ({ path: `/content/${root}/${'d/'.repeat(7)}${index.toString(36)}` })
      },
      allowance: { requests: 6000, connections: 100 },
      statuses: [200, 404, 429, 503],
    },
    {
      name: 'name-proofs',
      title: `proofs and histories of a name with ${names} spends of nodes before it`,
      async prepare(fixture) {
        await fixture.admit(fixture.chain.genesis)
        const minted = await mintMany(fixture, names)
        const last = minted.at(-1) ?? ''
        const asked: HostileRequest[] = [
          { path: `/svc/names/proof/${last}` },
          { path: `/svc/names/${last}` },
          postingJson('/lookup', { service: 'ls_names', query: { name: last, history: true } }),
          postingJson('/lookup', { service: 'ls_names', query: { mine: `${last}zzz`, history: true } }),
        ]
        return (index) => pick(asked, index)
      },
      allowance: { requests: 100, connections: 8 },
      statuses: [200, 429, 503],
    },
    {
      name: 'name-pages',
      title: `pages of ${names} names, and lookups of 100 with their transactions`,
      async prepare(fixture) {
        await fixture.admit(fixture.chain.genesis)
        const minted = await mintMany(fixture, names)
        return (index) => {
          const after = minted[(index * 131) % minted.length] ?? ''
          return index % 2 === 0
            ? { path: `/svc/names?limit=100&after=${after}` }
            : postingJson('/lookup', { service: 'ls_names', query: { prefix: '', limit: 100, after } })
        }
      },
      allowance: { requests: 2000, connections: 100 },
      statuses: [200, 429, 503],
    },
    {
      name: 'origins',
      title: 'origins of 1,000 outpoints, most of them unknown',
      async prepare({ chain, admit }) {
        await admit(chain.genesis)
        return (index) => {
          const txid = (at: number): string => (index * 1000 + at).toString(16).padStart(64, 'e')
          const outpoints = Array.from({ length: 1000 }, (_, at) => `${txid(at)}_${at}`)
          return index % 2 === 0
            ? postingJson('/svc/names/origins', outpoints)
            : postingJson('/lookup', { service: 'ls_names', query: { origins: outpoints } })
        }
      },
      allowance: { requests: 2000, connections: 100 },
      statuses: [200, 429, 503],
    },
    {
      name: 'conditional',
      title: 'conditional requests with 12 KiB of tags',
      async prepare({ chain, admit }) {
        const file = chain.inscribe({ contentType: 'text/plain', body: utf8('a'.repeat(4096)) })
        await admit(file)
        const tags = Array.from({ length: 3000 }, (_, at) => `"${at.toString(36).padStart(1, '0')}"`)
        const list = tags.join(',').slice(0, 12 * 1024)
        const headers = [
          { 'If-None-Match': list },
          { 'If-Match': list },
          { 'If-None-Match': `W/${'"'.repeat(12_000)}` },
          { 'If-None-Match': ','.repeat(12_000) },
        ]
        return (index) => ({
          path: `/content/${file.outpoint(0)}`,
          headers: pick(headers, index),
        })
      },
      allowance: { requests: 6000, connections: 100 },
      statuses: [200, 304, 400, 412, 429, 503],
    },
    {
      name: 'sync-offers',
      title: 'what a peer asks for, from odd scores on',
      async prepare({ chain, admit }) {
        for (let at = 0; at < names; at++)
          await admit(chain.inscribe({ contentType: 'text/plain', body: utf8(`offer ${at}`) }))
        const since = [0, 1, Number.MAX_SAFE_INTEGER, 2 ** 31, 1e15]
        return (index) => ({
          ...postingJson('/requestSyncResponse', { version: 1, since: pick(since, index) }),
          headers: { 'x-bsv-topic': 'tm_ordinals', 'Content-Type': 'application/json' },
        })
      },
      allowance: { requests: 600, connections: 50 },
      statuses: [200, 400, 429, 503],
    },
    {
      name: 'unread',
      title: 'each route 63 times at once on a connection, of which nothing is read',
      async prepare({ chain, admit }) {
        await admit(chain.genesis)
        await admit(chain.mint('a'))
        const film = chain.inscribe({ contentType: 'video/mp4', body: new Uint8Array(8 * MiB).fill(7) })
        await admit(film)
        const held = film.outpoint(0)
        const peer = { 'x-bsv-topic': 'tm_ordinals', 'Content-Type': 'application/json' }
        const routes: HostileRequest[] = [
          { path: `/content/${held}` },
          { path: `/svc/gateway/stream/${held}` },
          { path: `/svc/gateway/proof/${held}` },
          { path: `/svc/gateway/metadata/${held}` },
          { path: `/svc/beef/${film.txid}` },
          { path: `/svc/beef/${film.txid}/tx` },
          { path: '/openapi.json' },
          { path: '/svc/names/proof/a' },
          { path: '/svc/names/a' },
          { path: '/svc/gateway/newest/names' },
          { path: '/names', headers: { Accept: 'text/html' } },
          postingJson('/lookup', { service: 'ls_ordinals', query: { outpoint: held } }),
          postingJson('/svc/gateway/metadata', [held]),
          postingJson('/svc/names/origins', [held]),
          {
            ...postingJson('/requestForeignGASPNode', {
              graphID: `${film.txid}.0`,
              ...{ txid: film.txid, outputIndex: 0 },
            }),
            headers: peer,
          },
        ]
        return (index) => {
          const route = pick(routes, index)
          const Range = `bytes=${index * 63}-`
          return { ...route, headers: { Range, ...route.headers }, atOnce: 63 }
        }
      },
      // All reads that a client has in a minute.
      allowance: { requests: 95, connections: 95 },
      statuses: ['held'],
    },
    {
      name: 'connections',
      title: 'a read on each of the connections that one client may open, all at once',
      async prepare({ chain, admit }) {
        const file = chain.inscribe({ contentType: 'text/plain', body: utf8('a'.repeat(4096)) })
        await admit(file)
        return () => ({ path: `/content/${file.outpoint(0)}` })
      },
      allowance: { requests: 4900, connections: 4900 },
      statuses: [200, 429, 503, 'ECONNRESET'] as Attack['statuses'],
    },
  ]
}

/** Reads of what a large transaction holds, or of what says that it does. */
export function largeAttacks({ largeBytes = 60 * MiB }: { largeBytes?: number } = {}): Attack[] {
  return [
    {
      name: 'large-kept',
      title: `${Math.round(largeBytes / MiB)} MiB that are kept: the record of a name in it, garbage for it, what peers ask of it`,
      async prepare(fixture) {
        const mint = await largeMint(fixture, largeBytes)
        const other = toHex(new Uint8Array(32).fill(7))
        const node = { txid: mint.txid, outputIndex: 0 }
        const peer = { 'x-bsv-topic': 'tm_names', 'Content-Type': 'application/json' }
        const asked: HostileRequest[] = [
          { path: '/svc/names/z' },
          postingJson('/arc-ingest', { txid: mint.txid, merklePath: '00', blockHeight: 1 }),
          {
            ...postingJson('/requestForeignGASPNode', { ...node, graphID: `${other}.0` }),
            headers: peer,
          },
          { path: '/svc/names/mine/zz' },
          { path: `/svc/gateway/metadata/${mint.outpoint(2)}:-1` },
        ]
        return (index) => pick(asked, index)
      },
      allowance: { requests: 3000, connections: 100 },
      statuses: [200, 400, 404, 429, 503],
    },
    {
      name: 'large-lookups',
      title: `lookups that answer with ${Math.round(largeBytes / MiB)} MiB`,
      async prepare(fixture) {
        await largeMint(fixture, largeBytes)
        const question = postingJson('/lookup', { service: 'ls_names', query: { name: 'z' } })
        return () => question
      },
      allowance: { requests: 16, connections: 16 },
      statuses: [200, 413, 429, 503],
    },
  ]
}

/** What several attacks on one store share. */
const largeMints = new WeakMap<FakeChain, FakeTransaction>()
const namesMinted = new WeakMap<FakeChain, string[]>()

/** A mint of `z` with a large output behind the ones that it is about. */
async function largeMint({ chain, admit }: Fixture, bytes: number): Promise<FakeTransaction> {
  const known = largeMints.get(chain)
  if (known !== undefined) return known
  const body = new Uint8Array(bytes).map((_, at) => at % 251)
  const lockingScript = inscriptionScript({ contentType: 'video/mp4', body })
  const mint = chain.mint('z', { trailing: [{ satoshis: 1, lockingScript }] })
  await admit(chain.genesis)
  await admit(mint)
  largeMints.set(chain, mint)
  return mint
}

/** Mints so many names, each letter of them. */
async function mintMany({ chain, admit }: Fixture, count: number): Promise<string[]> {
  const known = namesMinted.get(chain)
  if (known !== undefined) return known
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789-'
  const minted: string[] = []
  for (let row = 0; minted.length < count; row++) {
    for (let length = 1; length <= COVENANT_LIMITS.nameBytes && minted.length < count; length++) {
      const name = pick([...letters], row) + 'n'.repeat(length - 1)
      await admit(chain.mint(name))
      minted.push(name)
    }
  }
  namesMinted.set(chain, minted)
  return minted
}
