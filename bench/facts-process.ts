import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { HEADER_BYTES, headerAt, headerCount } from '../backend/src/protocol/block-header.js'
import { parseOutpoint } from '../backend/src/protocol/outpoint.js'
import { type Node, openNode } from '../src/server/node.js'
import { startServer } from '../src/server/server.js'
import { batchesIn, headersIn, type NetworkIndex, readNetwork } from './facts-network.js'
import { configFor, SILENT, type Spent, sizesOf, spent } from './support.js'

/** The task of a process with a store of its own; the network is in another folder. */
export type Task = 'fill' | 'rebuild' | 'read' | 'serve' | 'bare'

export interface Filled extends Spent {
  /** The bytes of all pages in use, by file. */
  sizes: Record<string, number>
}

export interface Rebuilt extends Spent {
  /** The peak memory of the process, in bytes. */
  peak: number
  sizes: Record<string, number>
}

/** Microseconds of processor time, by kind of read. */
export type ReadTimes = Record<string, number>

export interface Serving {
  url: string
}

const PAGE = 10_000
const WARM = 300
const READS = 2000

const [task, network, folder] = process.argv.slice(2) as [Task, string, string]
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())
const about = readNetwork(network)
const config = configFor(about, folder)

const tasks: Record<Task, () => Promise<unknown>> = { fill, rebuild, read, serve, bare }
process.send?.(await tasks[task]())

async function fill(): Promise<Filled> {
  const node = await openNode({ config, logger: SILENT })
  let [wall, cpu] = [0, 0]
  const headers = headersIn(network)
  let tip: Uint8Array | undefined
  for (let at = 0; at < headerCount(headers); at += PAGE) {
    const page = headers.subarray(at * HEADER_BYTES, (at + PAGE) * HEADER_BYTES)
    const change = { height: about.firstHeight + at, headers: page, tip }
    if (!(await node.store.headers.replaceFrom(change))) throw new Error('another wrote headers')
    tip = headerAt(page, headerCount(page) - 1)
  }
  for (const batch of batchesIn(network)) {
    const subjects = batch.map(({ txid }) => txid)
    const took = await spent(() => node.store.record(batch, { subjects }))
    wall += took.wall
    cpu += took.cpu
  }
  await node.close()
  return { wall, cpu, sizes: sizesOf(folder) }
}

async function rebuild(): Promise<Rebuilt> {
  for (const file of readdirSync(folder)) if (file.startsWith('index-')) rmSync(join(folder, file))
  let node: Node | undefined
  const took = await spent(async () => {
    node = await openNode({ config, logger: SILENT })
    await node.index.run()
  })
  if (node?.index.status.state !== 'equal') throw new Error('the index is not complete')
  await node.close()
  return { ...took, peak: process.resourceUsage().maxRSS * 1024, sizes: sizesOf(folder) }
}

/** Opens the store, and reads it once for every message. */
async function read(): Promise<ReadTimes> {
  const node = await openNode({ config, logger: SILENT })
  process.on('message', async () => process.send?.(await timesOf(node, about)))
  return await timesOf(node, about)
}

async function timesOf({ store }: Node, { long, names, moved }: NetworkIndex): Promise<ReadTimes> {
  const outpoint = parseOutpoint(long)
  const ordinals = moved.map((each) => parseOutpoint(each))
  const pick = <Item>(items: readonly Item[], at: number): Item => items[(at * 7919) % items.length] as Item
  const reads: Record<string, (at: number) => unknown> = {
    'tip of the long ordinal': () => store.ordinals.at(outpoint, -1),
    'tip of an ordinal': (at) => store.ordinals.at(pick(ordinals, at), -1),
    'name to tip': async (at) => {
      const origin = store.names.originOf(pick(names, at))
      return origin && store.ordinals.at(origin, -1)
    },
    'merged MAP of the long ordinal': async () => {
      const tip = store.ordinals.at(outpoint, -1)
      return tip && store.metadata.merged(tip)
    },
  }
  const times: ReadTimes = {}
  for (const [what, ask] of Object.entries(reads)) {
    for (let at = 0; at < WARM; at++) if ((await ask(at)) === undefined) throw new Error(`no ${what}`)
    const { cpu } = await spent(async () => {
      for (let at = 0; at < READS; at++) await ask(at)
    })
    times[what] = (cpu * 1000) / READS
  }
  return times
}

async function serve(): Promise<Serving> {
  const { url } = await startServer({ config, logger: SILENT })
  process.on('message', () => process.send?.(process.cpuUsage()))
  return { url }
}

/** A server of `node:http` alone. */
async function bare(): Promise<Serving> {
  const server = createServer((_request, response) => void response.end('bare')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
