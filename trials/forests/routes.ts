import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { encodeAddress } from '../../backend/src/protocol/address.js'
import { readBeefFrame } from '../../backend/src/protocol/beef.js'
import { ByteCursor } from '../../backend/src/protocol/byte-cursor.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import { verifyNameProof } from '../../src/client/verify-name.js'
import { verifyProvenance } from '../../test/support/graph/provenance-verifier.js'
import type { ForestAnswers } from './answers.js'
import type { ForestLife } from './life.js'
import { expectedLookups } from './lookups.js'
import { type Answered, expectSame, namesOf, outpointsOf } from './reads.js'

interface Got {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

async function ask(
  url: string,
  path: string,
  json?: unknown,
  headers: Record<string, string> = {},
): Promise<Got> {
  const { hostname, port } = new URL(url)
  const method = json === undefined ? 'GET' : 'POST'
  return await new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, method, agent, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        })
      })
    })
    asked.on('error', reject)
    asked.end(json === undefined ? undefined : JSON.stringify(json))
  })
}

/** Asks every route about every name and outpoint of a forest, and holds the answers against the model's. */
export async function expectRoutes(life: ForestLife): Promise<void> {
  const { answers, node } = life
  const got: Answered = {}
  const expected: Answered = {}
  const get = async (path: string, shown: (answer: Got) => unknown, wanted: unknown): Promise<void> => {
    const answer = await ask(node.url, path)
    got[path] = answer.status === 200 ? shown(answer) : answer.status
    expected[path] = wanted ?? 404
  }
  const json = ({ body }: Got): unknown => JSON.parse(body.toString('utf8'))
  await namesRoutes(life, get, json)
  await ordinalsRoutes(life, get, json)
  const all = [...outpointsOf(life.forest)]
  const origins = await ask(node.url, '/svc/names/origins', all)
  got.origins = json(origins)
  expected.origins = Object.fromEntries(all.map((each) => [each, answers.origins.has(each)]))
  await bulkMetadata(life, got, expected)
  expectSame(got, expected)
  await expectLookups(life)
  await expectProofs(life)
}

type Get = (path: string, shown: (answer: Got) => unknown, wanted: unknown) => Promise<void>

async function namesRoutes(
  { answers, forest }: ForestLife,
  get: Get,
  json: (answer: Got) => unknown,
): Promise<void> {
  for (const name of namesOf(forest)) {
    const outpoint = answers.originOf(name)
    await get(`/svc/names/origin/${name}`, json, outpoint && { name, outpoint })
    const node = answers.longestNode(name)
    await get(`/svc/names/mine/${name}`, json, node?.domain === name ? undefined : node)
    await get(`/svc/names/${name}`, json, nameRecord(answers, name))
  }
  const listed = (prefix: string) => answers.names.filter(({ name }) => name.startsWith(prefix))
  await get('/svc/names', json, { names: listed('') })
  await get('/svc/names?prefix=a', json, { names: listed('a') })
  const { length } = listed('')
  const [first] = listed('')
  await get('/svc/names?limit=1', json, {
    names: listed('').slice(0, 1),
    ...(length > 1 && { next: first?.name }),
  })
}

function nameRecord(answers: ForestAnswers, name: string): unknown {
  const origin = answers.originOf(name)
  if (origin === undefined) return undefined
  const step = answers.stepOf(origin, -1)
  const [node] = answers.liveNodes(name)
  const height = answers.heightOf(origin.slice(0, 64))
  return {
    name,
    origin,
    ...(step && {
      tip: {
        outpoint: step.outpoint,
        ...ownerOf(answers, step.outpoint),
        script: toHex(answers.said(step.outpoint).script),
        spent: answers.spenderOf(step.outpoint) !== undefined,
      },
      sequence: step.sequence,
      map: step.map,
    }),
    ...(node !== undefined && { node }),
    ...(height !== undefined && { height }),
  }
}

function ownerOf(answers: ForestAnswers, outpoint: string): { owner?: string } {
  const { owner } = answers.said(outpoint)
  return owner === undefined ? {} : { owner: encodeAddress(owner, 'main') }
}

const SEQUENCES = [undefined, -2, -1, 0, 1, 2]

async function ordinalsRoutes(
  { answers, forest }: ForestLife,
  get: Get,
  json: (answer: Got) => unknown,
): Promise<void> {
  for (const each of outpointsOf(forest)) {
    for (const sequence of SEQUENCES) {
      const asked = sequence === undefined ? each : `${each}:${sequence}`
      await get(`/content/${asked}`, shownContent, content(answers, each, sequence))
      await get(`/svc/gateway/metadata/${asked}`, json, metadata(answers, each, sequence))
    }
    const stream = answers.streamOf(each)
    await get(
      `/svc/gateway/stream/${each}`,
      ({ headers, body }) => ({
        type: headers['content-type'],
        origin: headers['x-origin'],
        body: body.toString('utf8'),
      }),
      stream && {
        type: stream.contentType,
        origin: answers.stepOf(each, -2)?.origin,
        body: Buffer.concat(stream.bodies).toString('utf8'),
      },
    )
  }
  for (const { txid } of forest.transactions) {
    const first = answers.firstContentOf(txid)
    await get(`/content/${txid}`, shownContent, first && content(answers, first, undefined))
  }
}

function shownContent({ headers, body }: Got): unknown {
  const map = headers['x-map']
  return {
    body: body.toString('utf8'),
    type: headers['content-type'],
    outpoint: headers['x-outpoint'],
    origin: headers['x-origin'],
    sequence: headers['x-ord-seq'],
    map: map === undefined ? {} : JSON.parse(String(map)),
    parent: headers['x-parent'],
    cache: headers['cache-control'],
  }
}

function content(answers: ForestAnswers, outpoint: string, sequence: number | undefined): unknown {
  const step = sequence === undefined ? undefined : answers.stepOf(outpoint, sequence)
  const known = step ?? (sequence === undefined ? answers.alone(outpoint) : undefined)
  const shown = known?.content === undefined ? undefined : answers.said(known.content).content
  if (known === undefined || shown === undefined) return undefined
  const at = step?.outpoint ?? outpoint
  const fixed = answers.heightOf(at.slice(0, 64)) === undefined ? 'public, max-age=60' : IMMUTABLE
  return {
    body: Buffer.from(shown.body).toString('utf8'),
    type: shown.contentType,
    outpoint: at,
    origin: step?.origin,
    sequence: step && String(step.sequence),
    map: known.map,
    parent: known.parent,
    cache: sequence === undefined ? IMMUTABLE : sequence === -1 ? 'no-cache' : fixed,
  }
}

const IMMUTABLE = 'public, max-age=31536000, immutable'

function metadata(answers: ForestAnswers, outpoint: string, sequence: number | undefined): unknown {
  const step = sequence === undefined ? undefined : answers.stepOf(outpoint, sequence)
  const known = step ?? (sequence === undefined ? answers.alone(outpoint) : undefined)
  if (known === undefined) return undefined
  const at = step?.outpoint ?? outpoint
  const shown = known.content === undefined ? undefined : answers.said(known.content).content
  const height = answers.heightOf(at.slice(0, 64))
  return {
    outpoint: at,
    ...(step && { origin: step.origin, sequence: step.sequence, tip: step.tip }),
    ...(shown && {
      contentOutpoint: known.content,
      contentType: shown.contentType,
      contentLength: shown.body.length,
      sha256: answers.hashOf(shown.body),
    }),
    map: known.map,
    ...(known.parent !== undefined && { parent: known.parent }),
    satoshis: answers.said(at).satoshis,
    ...ownerOf(answers, at),
    spent: answers.spenderOf(at) !== undefined,
    ...(height !== undefined && { height }),
  }
}

async function bulkMetadata(
  { answers, forest, node }: ForestLife,
  got: Answered,
  expected: Answered,
): Promise<void> {
  const some = outpointsOf(forest).slice(0, 40)
  const asked = some.flatMap((each) => [each, `${each}:-1`])
  got.bulk = JSON.parse((await ask(node.url, '/svc/gateway/metadata', asked)).body.toString('utf8'))
  const records = some.flatMap((each) => [
    [each, metadata(answers, each, undefined) ?? null],
    [`${each}:-1`, metadata(answers, each, -1) ?? null],
  ])
  expected.bulk = Object.fromEntries(records)
}

/** Every form of `/lookup`; each BEEF holds what is found, and nothing that does not count. */
async function expectLookups({ answers, forest, node }: ForestLife): Promise<void> {
  const got: Answered = {}
  const expected = expectedLookups(answers, forest)
  for (const key of Object.keys(expected)) {
    const service = key.slice(0, key.indexOf(' '))
    const query: unknown = JSON.parse(key.slice(service.length))
    const answer = await ask(node.url, '/lookup', { service, query }, { 'X-Aggregation': 'yes' })
    got[key] = answer.status === 200 ? outputList(answer.body, answers) : answer.status
  }
  expectSame(got, expected)
}

function outputList(body: Buffer, { decision }: ForestAnswers): string[] {
  const cursor = new ByteCursor(Uint8Array.from(body), (message) => new Error(message))
  const outputs = Array.from({ length: cursor.varint() }, () => {
    const txid = toHex(cursor.take(32))
    const vout = cursor.varint()
    cursor.take(cursor.varint())
    return `${txid}_${vout}`
  })
  const beef = readBeefFrame(Uint8Array.from(body.subarray(cursor.at)))
  const txids = beef.transactions.map(({ raw }) => readTransaction(raw).txid)
  expect(txids.filter((txid) => !decision.counts.has(txid))).toEqual([])
  expect(outputs.filter((each) => !txids.includes(each.slice(0, 64)))).toEqual([])
  return outputs
}

/** Provenance and name proofs, checked as a wallet would. */
async function expectProofs(life: ForestLife): Promise<void> {
  const { answers, forest, node, chain } = life
  const { deployment } = forest.chain
  const starts = [...answers.origins.keys()]
  for (const each of outpointsOf(forest)) {
    const path = answers.lineage(each)
    const { status, body } = await ask(node.url, `/svc/gateway/provenance/${each}`)
    expect({ each, status }).toEqual({ each, status: path.length === 0 ? 404 : 200 })
    if (status !== 200 || !path.every((hop) => life.isProven(hop.slice(0, 64)))) continue
    const isRoot = (root: string, height: number) => chain.accepts({ root, height })
    const shown = verifyProvenance(body, { isRoot, starts, more: true })
    expect(shown).toEqual({ tip: path.at(-1), origin: answers.stepOf(each, -2)?.origin, path })
  }
  for (const name of namesOf(forest)) {
    const origin = answers.originOf(name)
    const { status, body } = await ask(node.url, `/svc/names/proof/${name}`)
    expect({ name, status }).toEqual({ name, status: origin === undefined ? 404 : 200 })
    if (origin === undefined || !life.isProven(origin.slice(0, 64))) continue
    const proof = Uint8Array.from(body)
    const shown = await verifyNameProof({ proof, name, deployment, chainTracker: chain })
    expect(formatOutpoint(shown.origin)).toBe(origin)
    expect(shown.height).toBe(answers.heightOf(origin.slice(0, 64)))
  }
}
