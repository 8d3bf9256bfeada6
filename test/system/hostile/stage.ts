import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PrivateKey } from '@bsv/sdk'
import { pino } from 'pino'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES, type ProfileName, termsOf } from '../../../backend/src/protocol/profile.js'
import { deployTree } from '../../../src/cli/fake-transactions.js'
import { readConfig } from '../../../src/server/config/config.js'
import { startServer } from '../../../src/server/server.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { ask, submission } from '../../support/server/test-server.js'
import { type Handler, HostileServer } from './hostile-server.js'
import { Ledger } from './ledger.js'

/** The work of the trees here: a solution is found at once. */
export const DIFFICULTY = 8
/** Whose coins pay for mints. */
export const PAYING_KEY = new PrivateKey(21)

/** A tree of names that a real server follows, and that nobody has mined in. */
export interface HonestTree {
  url: string
  genesis: Outpoint
  /** Settings that make a client follow it, whatever servers say. */
  env: Record<string, string>
}

/** Says yes to what will be paid, and how many seconds of mining are enough. */
export const CONSENT = ['--yes', '--max-time', '15']

/** Where an attack takes place: servers, folders and money, all gone when it is closed. */
export class Stage {
  readonly ledger = new Ledger()
  readonly servers: HostileServer[] = []
  private readonly closing: (() => Promise<void>)[] = []

  private constructor(
    /** A host in the client's own network, which nobody outside could reach. */
    readonly internal: HostileServer,
  ) {
    this.closing.push(() => internal.close())
  }

  static async open(): Promise<Stage> {
    const internal = await HostileServer.open((_, response) => void response.end('{}'))
    return new Stage(internal)
  }

  async close(): Promise<void> {
    for (const close of this.closing.splice(0).reverse()) await close()
  }

  async folder(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), 'minetree-hostile-'))
    this.closing.push(() => rm(path, { recursive: true, force: true }))
    return path
  }

  async serve(handler: Handler): Promise<HostileServer> {
    const server = await HostileServer.open(handler)
    this.servers.push(server)
    this.closing.push(() => server.close())
    return server
  }

  /** Starts a real server that follows a new tree of our covenant. */
  async tree(profile: ProfileName = 'local', difficulty = DIFFICULTY): Promise<HonestTree> {
    const { genesis, beef } = deployTree(termsOf(PROFILES[profile], { covenantVersion: 2, difficulty }))
    const env = {
      PROFILE: profile,
      GENESIS: formatOutpoint(genesis),
      COVENANT_VERSION: '2',
      DIFFICULTY: String(difficulty),
      CHAIN_TRACKER: 'scripts-only',
    }
    const config = readConfig({ ...env, PORT: '0', DATA_DIR: await this.folder() })
    const { url, stop } = await startServer({ config, logger: pino({ level: 'silent' }) })
    this.closing.push(stop)
    const { status } = await ask(url, '/submit', submission(beef))
    if (status !== 200) throw new Error(`the tree was not taken: ${status}`)
    return { url, genesis, env }
  }

  /** Arguments with which the command pays by a key that has coins of these values. */
  async purse(...values: number[]): Promise<string[]> {
    const folder = await this.folder()
    const keyFile = join(folder, 'key.wif')
    const coins = join(folder, 'coins.beef')
    await writeFile(keyFile, `${PAYING_KEY.toWif()}\n`, { mode: 0o600 })
    await writeFile(coins, Uint8Array.from(coinsFor(PAYING_KEY, ...values).toBEEF()))
    return ['--key-file', keyFile, '--coins', coins, ...CONSENT]
  }
}
