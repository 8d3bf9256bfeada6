import type { RequestListener, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { Random } from '../random.js'
import { listening } from '../server/connections.js'
import type { Header } from '../server/header-chain.js'
import type { Environment } from '../server/test-server.js'
import { ChainFacts, ChainService, type ServiceKind } from './chain-services.js'
import type { ChainWorld } from './chain-world.js'
import type { Fault } from './fake-service.js'
import type { LiveEvent, LivePlan, Misbehaviour } from './live-plan.js'

/** The id of a subscription to everything. */
const SUBSCRIPTION = 'everything'

/** What every node of a world knows, for services that speak the protocols of chain sources. */
class WorldFacts extends ChainFacts {
  constructor(private readonly world: ChainWorld) {
    super(world.headers)
    // What of it exists by now, the world says.
    this.know(world.history.transactions)
    this.subscriptions.set(SUBSCRIPTION, () => true)
  }

  override transaction(txid: string): TransactionRecord | undefined {
    return this.world.record(txid)
  }

  override spenderOf(outpoint: Outpoint): string | undefined {
    return this.world.spenderOf(outpoint)
  }
}

/** A source of a world, which may misbehave. */
class WorldSource {
  private readonly service: ChainService
  private readonly open = new Set<ServerResponse>()

  constructor(
    private readonly world: ChainWorld,
    private readonly kind: ServiceKind,
    { facts, onQuestion }: { facts: WorldFacts; onQuestion: () => void },
  ) {
    this.service = new ChainService(kind, facts)
    this.service.onQuestion = onQuestion
  }

  readonly listener: RequestListener = (request, response) => {
    this.open.add(response)
    response.once('close', () => this.open.delete(response))
    this.service.listener(request, response)
  }

  misbehave({ how, share, choice }: { how: Misbehaviour; share: number; choice: number }): void {
    const random = new Random(choice)
    this.service.fault = (path) => (random.next() < share ? this.fault(path, { how, random }) : undefined)
  }

  recover(): void {
    this.service.fault = () => undefined
    // What it has not answered so far, it never will.
    for (const response of this.open) response.destroy()
  }

  private fault(path: string, { how, random }: { how: Misbehaviour; random: Random }): Fault | undefined {
    const isSpend = /\/(spend\/|.*spent$)/.test(path)
    const isProof = path.includes('/proof')
    const lie = this.kind === 'junglebus' ? JUNGLEBUS_LIES : WHATSONCHAIN_LIES
    switch (how) {
      case 'busy':
        return { kind: 'busy', until: '1' }
      case 'fails':
        return { kind: 'status', status: 500 }
      case 'cuts':
        return 'cut'
      case 'stalls':
        return 'never'
      case 'forgets':
        return isSpend ? lie.unknown : { kind: 'status', status: 404 }
      case 'hides spenders':
        return isSpend ? lie.unspent : undefined
      case 'lies about spenders':
        return isSpend ? lie.spent(random.pick(this.world.history.transactions)?.txid ?? '') : undefined
      case 'lies about transactions':
        return isSpend || isProof ? undefined : 'other'
      case 'lies about proofs':
        return isProof ? this.falseProof(path) : undefined
    }
  }

  /** The path of a block that the chain took back, or that of another transaction. */
  private falseProof(path: string): Fault {
    const txid = /[0-9a-f]{64}/.exec(path)?.[0] ?? ''
    const stale = this.world.staleBlockOf(txid)?.proof(txid).merklePath
    if (stale === undefined) return 'other'
    const isBinary = this.kind === 'junglebus'
    return { kind: 'body', body: isBinary ? stale : Buffer.from(toHex(stale)) }
  }
}

/** How a service says of an output what is not so. */
interface Lies {
  unknown: Fault
  unspent: Fault
  spent(txid: string): Fault
}

const JUNGLEBUS_LIES: Lies = {
  unknown: { kind: 'status', status: 404 },
  unspent: { kind: 'body', body: new Uint8Array() },
  spent: (txid) => ({ kind: 'body', body: fromHex(txid) }),
}
const WHATSONCHAIN_LIES: Lies = {
  unknown: { kind: 'status', status: 400 },
  unspent: { kind: 'status', status: 404 },
  spent: (txid) => ({
    kind: 'body',
    body: Buffer.from(JSON.stringify({ txid, vin: 0, status: 'confirmed' })),
  }),
}

/** Several sources that know one world, for one run. */
export class WorldSources {
  private asked = 0
  private readonly waiting = new Set<() => void>()

  private constructor(
    private readonly sources: readonly WorldSource[],
    private readonly parts: { names: string; first: Header; close(): Promise<void> },
  ) {}

  static async start(world: ChainWorld, kinds: readonly ServiceKind[]): Promise<WorldSources> {
    let all: WorldSources | undefined
    const facts = new WorldFacts(world)
    const onQuestion = (): void => all?.count()
    const sources = kinds.map((kind) => new WorldSource(world, kind, { facts, onQuestion }))
    const servers = await Promise.all(sources.map(({ listener }) => listening(listener)))
    const names = servers.map(({ url }, at) => `${kinds[at]}=${url}`).join(',')
    const close = async (): Promise<void> => {
      await Promise.all(servers.map((server) => server.close()))
    }
    const first = [...world.headers.branch.blocks()].at(-1)?.header
    if (first === undefined) throw new Error('a chain has a first block')
    all = new WorldSources(sources, { names, first, close })
    return all
  }

  /** As `CHAIN_SOURCES` and `HEADERS_SOURCES` name them. */
  get names(): string {
    return this.parts.names
  }

  /** Settings of a service that has these sources, and keeps headers of its own or reads a feed. */
  settings({ ownHeaders, feed }: Pick<LivePlan, 'ownHeaders' | 'feed'>): Environment {
    const { names, parts } = this
    const { height, hash } = parts.first
    const headers = {
      CHAIN_TRACKER: 'headers',
      HEADERS_SOURCES: names,
      HEADERS_CHECKPOINT: `${height}:${hash}`,
    }
    return {
      CHAIN_SOURCES: names,
      ...(ownHeaders && headers),
      ...(feed && { JUNGLEBUS_SUBSCRIPTION: SUBSCRIPTION }),
    }
  }

  misbehave(event: Extract<LiveEvent, { kind: 'misbehave' }>): void {
    this.sources[event.source % this.sources.length]?.misbehave(event)
  }

  recover(): void {
    for (const each of this.sources) each.recover()
  }

  /** Waits until so many questions more have come, or so many milliseconds have passed. */
  async questions(count: number, { atMost }: { atMost: number }): Promise<void> {
    const target = this.asked + count
    const giveUp = new AbortController()
    const enough = new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.asked >= target) resolve()
      }
      this.waiting.add(look)
      giveUp.signal.addEventListener('abort', () => this.waiting.delete(look))
      look()
    })
    await Promise.race([enough, setTimeout(atMost, undefined, { signal: giveUp.signal }).catch(() => {})])
    giveUp.abort()
  }

  async close(): Promise<void> {
    this.recover()
    await this.parts.close()
  }

  private count(): void {
    this.asked++
    for (const look of [...this.waiting]) look()
  }
}
