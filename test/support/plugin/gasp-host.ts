import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { build, stop } from 'esbuild'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { untilListening } from '../server/until-listening.js'
import type { EngineVersion } from './engines.js'

const ROOT = resolve(import.meta.dirname, '../../..')
export interface GaspHostSettings {
  /** Where the database of its engine is. */
  knexUrl: string
  /** Where that of the plugin is, `mysql://` or `mongodb://`; by default the same, by the same connection. */
  logUrl?: string
  /** Where the plugin keeps its files. */
  indexDir?: string
  deployment: Deployment
  engine: EngineVersion
  /** Whether the program mounts the routes of `attachSync`. */
  attached: boolean
  /** The hosts that both topics are synced from. */
  peers: string[]
  /** The settings of `attachFollower`, if it follows the chain. */
  follow?: Record<string, string>
}

/** A host in a process of its own: an engine with its storage, its GASP, and the plugin, over the routes of OverlayExpress. */
export interface GaspHost {
  url: string
  /** Has the engine ask its peers for both topics, as OverlayExpress does when it starts; resolves when it is done. */
  sync(): Promise<void>
  /** Ends the process by SIGKILL. */
  stop(): Promise<void>
}

let bundle: Promise<string> | undefined

/** The program of a host, in one text. */
function program(): Promise<string> {
  bundle ??= build({
    entryPoints: [join(ROOT, 'test/support/plugin/gasp-host-program.ts')],
    bundle: true,
    write: false,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
  }).then(async ({ outputFiles }) => {
    await stop()
    return outputFiles[0]?.text ?? ''
  })
  return bundle
}

/** Starts a host; it keeps what its database has. */
export async function startGaspHost({ deployment, ...rest }: GaspHostSettings): Promise<GaspHost> {
  const marker = Buffer.from(deployment.marker).toString('hex')
  const settings = JSON.stringify({ ...rest, deployment: { ...deployment, marker } })
  const child = spawn(process.execPath, ['--input-type=module', '-'], {
    cwd: ROOT,
    env: { ...process.env, GASP_HOST: settings, ...(rest.indexDir && { INDEX_DIR: rest.indexDir }) },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(await program())
  const url = await untilListening(child)
  return {
    url,
    async sync() {
      const response = await fetch(`${url}/admin/startGASPSync`, { method: 'POST' })
      if (!response.ok) throw new Error(`no sync: ${await response.text()}`)
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}
