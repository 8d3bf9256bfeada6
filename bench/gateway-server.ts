import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { concatBytes, utf8 } from '../backend/src/protocol/bytes.js'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { createApp } from '../src/server/app.js'
import { startServer } from '../src/server/server.js'
import {
  beefOf,
  FakeChain,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { processFolder } from './process-folder.js'
import { configFor, SILENT } from './support.js'

/** What the loading process is sent: our server, and paths of it. */
export interface GatewayReady {
  url: string
  /** Bare Express apps that end every request with the bytes and headers of `files[0]`, by outpoint and at its tip. */
  bare: string
  bareTip: string
  /** Our server without what it keeps in memory. */
  forgetful: string
  /** 4 KiB each. */
  files: string[]
  /** Outpoints of ordinals that have lived as many steps. */
  young: string
  old: string
  flat: string
  deep: string
}

/** The process that the benches of the gateway load: our server over ordinals, files and directories. */
const folder = processFolder()

const chain = new FakeChain()
const config = configFor(chain, folder)
const server = await startServer({ config, logger: SILENT })

async function submit(transaction: FakeTransaction, parent: FakeTransaction): Promise<FakeTransaction> {
  const beef = beefOf(transaction, { with: [parent] })
  await server.node.overlay.engine.submit({ beef, topics: [TOPICS.ordinals] })
  return transaction
}

async function inscribed(outputs: FakeOutput[]): Promise<FakeTransaction> {
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 100_000, lockingScript: p2pkh(0) }] })
  return await submit(chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs }), coin)
}

function fileOf(index: number, contentType = 'text/plain'): FakeOutput {
  const body = utf8(`${index} `.repeat(4096).slice(0, 4096))
  return { satoshis: 1, lockingScript: inscriptionScript({ contentType, body }) }
}

/** An ordinal with 4 KiB of content that says something new of itself every third step. */
async function lived(steps: number): Promise<string> {
  let tip = await inscribed([fileOf(-steps)])
  const origin = tip.outpoint(0)
  for (let step = 1; step <= steps; step++) {
    const said = concatBytes(p2pkh(2), mapTail({ level: String(step), [`badge ${step % 10}`]: String(step) }))
    const lockingScript = step % 3 === 0 ? said : p2pkh(2)
    const next = chain.spend({
      inputs: [{ transaction: tip, vout: 0 }],
      outputs: [{ satoshis: 1, lockingScript }],
    })
    tip = await submit(next, tip)
  }
  return origin
}

function directory(entries: Record<string, string>): FakeOutput {
  const body = utf8(JSON.stringify(entries))
  return { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'ord-fs/json', body }) }
}

const files = await inscribed(Array.from({ length: 100 }, (_, index) => fileOf(index)))
const depths = Array.from({ length: 8 }, (_, depth) =>
  directory(depth === 7 ? { 'a.txt': files.outpoint(0) } : { d: `_${depth + 1}` }),
)
const tree = await inscribed(depths)

/** A bare Express app that ends every request with the bytes and headers of one of ours. */
async function bareLike(path: string): Promise<string> {
  const answer = await fetch(server.url + path)
  const body = Buffer.from(await answer.arrayBuffer())
  const headers = [...answer.headers].filter(([name]) => !['connection', 'date', 'keep-alive'].includes(name))
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .get('/content/:outpoint', (_request, response) => {
      for (const [name, value] of headers) response.setHeader(name, value)
      response.end(body)
    })
  return await listening(createServer(app))
}

/** The same routes over the same store, with nothing kept in memory: every answer is read. */
const { graph, overlay } = server.node
const unkept = graph.store
const ping = () => unkept.ping()
const forgetful = createServer(createApp({ config, overlay, graph: unkept, ping, logger: SILENT }))

async function listening(host: Server): Promise<string> {
  await once(host.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(host.address() as AddressInfo).port}`
}

const ready: GatewayReady = {
  url: server.url,
  bare: await bareLike(`/content/${files.outpoint(0)}`),
  bareTip: await bareLike(`/content/${files.outpoint(0)}:-1`),
  files: Array.from({ length: 100 }, (_, index) => files.outpoint(index)),
  forgetful: await listening(forgetful),
  young: await lived(10),
  old: await lived(Number(process.env.OLD ?? 10_000)),
  flat: `${tree.outpoint(7)}/a.txt`,
  deep: `${tree.outpoint(0)}/${'d/'.repeat(7)}a.txt`,
}
process.send?.(ready)
