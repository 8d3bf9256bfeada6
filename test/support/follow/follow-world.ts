import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { Follower, type FollowerOptions } from '../../../src/chain/follow/follower.js'
import { ChainSources } from '../../../src/chain/sources/chain-sources.js'
import { JungleBusSource } from '../../../src/chain/sources/junglebus.js'
import { runImport } from '../../../src/cli/import.js'
import { readConfig } from '../../../src/server/config/config.js'
import { type Node, openNode } from '../../../src/server/node.js'
import { admitBeef } from '../../../src/server/writer/admit.js'
import { keptOutput } from '../cli/commands.js'
import { startHeaderService } from '../server/header-service.js'
import { HostTracker } from '../server/host-tracker.js'
import { type Environment, SILENT, treeOf, useServers } from '../server/test-server.js'
import { storedRows } from '../storage/fact-rows.js'
import { CrawledTree } from './crawled-tree.js'
import { type JungleBusService, startJungleBus } from './junglebus.js'

type Servers = ReturnType<typeof useServers>

/** Trees with a source and headers of their chain, for the tests of one file. */
export function useFollowWorlds(): {
  world(): Promise<FollowWorld>
  folder(): Promise<string>
  servers: Servers
} {
  const servers = useServers()
  return { world: () => openWorld(servers), folder: () => servers.folder(), servers }
}

export interface FollowOptions extends Partial<FollowerOptions> {
  /** After how many submitted transactions it is stopped. */
  most?: number
  onLimit?: () => void
  /** Of a request, in milliseconds. */
  timeout?: number
  /** For how long a source is waited for, in milliseconds. */
  patience?: number
  /** Called before it begins. */
  prepare?: (started: { stop(): Promise<void> }) => void
}

export interface Crawled {
  report: Follower['report']
  failures: string[]
  unproven: number
  wasStopped: boolean
}

export interface StartedFollower {
  follower: Follower
  stop(): Promise<void>
  /** Waits until its source is asked again after an outage. */
  rested(): Promise<void>
}

export interface FollowWorld {
  tree: CrawledTree
  service: JungleBusService
  /** Of the service. */
  url: string
  /** The settings of a node of its own, which has a service as its source of headers. */
  env: Environment
  /** Those of them that say where headers come from. */
  headersSettings: Environment
  /** For a node in this process. */
  tracker: HostTracker
  open(dataDir: string): Promise<Node>
  /** A follower of an open node. */
  follower(node: Node, options?: FollowOptions): StartedFollower
  /** Follows into a folder to the end, unless it is stopped. */
  crawl(dataDir: string, options?: FollowOptions): Promise<Crawled>
  /** What is in the tables after all of it was imported in order. */
  imported(): Promise<Record<string, string[]>>
}

/** What was imported, by the transactions: most worlds have the same ones. */
const importedOnce = new Map<string, Record<string, string[]>>()

async function openWorld(servers: Servers): Promise<FollowWorld> {
  const tree = new CrawledTree()
  const { settings: headersSettings } = await startHeaderService(tree.headers)
  const tracker = new HostTracker(tree.headers)
  const { url, service } = await startJungleBus()
  service.know(...tree.records)
  const env = { ...treeOf(tree.chain.deployment), ...headersSettings }
  const open = (dataDir: string): Promise<Node> =>
    openNode({
      config: { ...readConfig({ ...env, DATA_DIR: dataDir }), givenTracker: tracker },
      logger: SILENT,
    })
  const follower: FollowWorld['follower'] = (
    node,
    { most = 1000, timeout = 600_000, patience = 400, onLimit, ...options } = {},
  ) => {
    const junglebus = new JungleBusSource({ url, timeout, firstRest: 50 })
    const source = new ChainSources({ sources: [junglebus], patience })
    let left = most
    const stop = async (): Promise<void> => {
      const stopped = follower.stop()
      source.close()
      await stopped
    }
    const follower = new Follower({
      node: {
        genesis: tree.chain.deployment.genesis,
        store: node.graph,
        async admit({ txid, beef }) {
          if (left-- > 0) return await admitBeef(node, { txid, beef: () => beef })
          onLimit?.()
          void stop()
          return { kind: 'known' }
        },
      },
      ...{ source, ordinals: 'names', parallel: 4, maxUnproven: 100, pollInterval: 0, logger: SILENT },
      limits: { maxTransactions: 1000, maxBytes: 1_000_000 },
      ...options,
    })
    return { follower, stop, rested: () => junglebus.client.rested() }
  }
  return {
    ...{ tree, service, url, env, headersSettings, tracker, open, follower },
    async crawl(dataDir, options = {}) {
      const node = await open(dataDir)
      let wasStopped = false
      const onLimit = (): void => {
        wasStopped = true
      }
      const started = follower(node, { ...options, onLimit })
      try {
        const stop = async (): Promise<void> => {
          wasStopped = true
          await started.stop()
        }
        options.prepare?.({ stop })
        await started.follower.crawl()
        const { report, failures } = started.follower
        return { report, failures, unproven: started.follower.status().unproven, wasStopped }
      } finally {
        await started.stop()
        await node.close()
      }
    },
    async imported() {
      const beef = encodeBeef(tree.records)
      const key = Buffer.from(beef).toString('base64')
      const before = importedOnce.get(key)
      if (before !== undefined) return before
      const dataDir = await servers.folder()
      const file = join(await servers.folder(), 'all.beef')
      await writeFile(file, beef)
      const { output } = keptOutput()
      const { signal } = new AbortController()
      // Among them are some that spend nodes and names to nowhere, which no topic takes.
      await expect(
        runImport({ open: () => open(dataDir), paths: [file], trust: false, output, signal }),
      ).rejects.toMatchObject({ exit: 'refused' })
      const rows = storedRows(dataDir)
      importedOnce.set(key, rows)
      return rows
    },
  }
}
