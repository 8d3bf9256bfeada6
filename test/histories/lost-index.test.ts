import { FactsHost } from './facts-host.js'
import { ask, type Host } from './host.js'
import { expectRuns } from './trial.js'
import { startWide, WIDE, wide } from './wide.js'

// The index is deleted amid a history, and derived from the log again: nothing that was acknowledged is lost, nor what is pending or not
// final, which goes on as if nothing had happened; and scores stay what they were, so that a peer that pages meanwhile misses nothing.

const TOPICS = ['tm_names', 'tm_ordinals']
/** How many a peer asks for at once. */
const PAGE = 3
/** How many blocks have to come before some are final. */
const LOCK = 6

/** Histories of which more is not final than of others. */
const plan = wide.map((each) => ({
  ...each,
  deeds: each.deeds.map((deed, at) => (at % 4 === 1 ? { ...deed, lock: LOCK } : deed)),
}))

/** An output that is offered to peers. */
interface Offered {
  txid: string
  outputIndex: number
  score: number
}

/** A peer that pages through what a topic offers, from the highest score that it has seen. */
class Pager {
  readonly seen = new Set<string>()
  private since = 0

  constructor(
    private readonly host: Host,
    private readonly topic: string,
  ) {}

  /** Asks for a page. @returns The status, and how many are in it. */
  async page(): Promise<{ status: number; count: number }> {
    const { status, offered } = await this.ask(this.since, PAGE)
    for (const { txid, outputIndex } of offered) this.seen.add(`${txid}_${outputIndex}`)
    this.since = offered.at(-1)?.score ?? this.since
    return { status, count: offered.length }
  }

  async toTheEnd(): Promise<void> {
    while ((await this.page()).count === PAGE) {
      // There may be more.
    }
  }

  /** All that is offered now, with scores. */
  async all(): Promise<Offered[]> {
    return (await this.ask(0, undefined)).offered
  }

  private async ask(
    since: number,
    limit: number | undefined,
  ): Promise<{ status: number; offered: Offered[] }> {
    const headers = { 'Content-Type': 'application/json', 'x-bsv-topic': this.topic }
    const body = JSON.stringify({ version: 1, since, ...(limit && { limit }) })
    const answer = await ask(this.host.url, { path: '/requestSyncResponse', headers, body })
    if (answer.status !== 200) return { status: answer.status, offered: [] }
    const { UTXOList: offered } = JSON.parse(answer.body.toString('utf8')) as { UTXOList: Offered[] }
    return { status: answer.status, offered }
  }
}

const HOSTS = { tracker: new FactsHost(WIDE), headers: new FactsHost(WIDE, 'headers') }
afterAll(async () => {
  for (const host of Object.values(HOSTS)) await host.close()
})

test.each(['tracker', 'headers'] as const)(
  'an index that is lost takes nothing along, not even from a peer that pages meanwhile (proofs: %s)',
  async (tracker) => {
    const host = HOSTS[tracker]
    await expectRuns({
      plan,
      runs: 3,
      least: ['lost beside pending', 'lost beside held', 'release: some', 'lost amid pages'],
      async run(each) {
        const run = await startWide(each, async ({ headers }) => {
          await host.clear(headers)
          return host
        })
        const pagers = TOPICS.map((topic) => new Pager(host, topic))
        const offered = async (): Promise<Offered[][]> => await Promise.all(pagers.map((each) => each.all()))
        await run.submitGenesis()
        const half = each.happenings.length / 2
        for (const event of each.happenings.slice(0, half)) await run.happen(event)
        const pages: number[] = []
        for (const pager of pagers) pages.push((await pager.page()).count)
        const { pending, held } = host.waiting()
        const before = await offered()
        await host.loseIndex(async () => {
          for (const pager of pagers) expect(await pager.page()).toEqual({ status: 503, count: 0 })
        })
        run.expectSame('when the index was lost', await host.storedDifferences(run.model))
        expect(host.waiting()).toEqual({ pending, held })
        expect(await offered()).toEqual(before)
        for (const event of each.happenings.slice(half)) {
          await run.happen(event)
          if (run.mayTie) break
        }
        if (!run.mayTie) {
          await run.happen({ kind: 'mine', reorg: 0, blocks: LOCK, choice: each.rest })
          await run.happen({ kind: 'release' })
          await run.read('at the end', { everything: false })
        }
        const counted = { 'lost beside pending': pending, 'lost beside held': held, 'lost amid pages': 0 }
        for (const [at, pager] of pagers.entries()) {
          if (pages[at] === PAGE) counted['lost amid pages']++
          await pager.toTheEnd()
          const missed = (await pager.all()).map(({ txid, outputIndex }) => `${txid}_${outputIndex}`)
          expect(missed.filter((outpoint) => !pager.seen.has(outpoint))).toEqual([])
        }
        const happened = Object.entries(counted).filter(([, times]) => times > 0)
        return { ...run.happened, ...Object.fromEntries(happened) }
      },
    })
  },
  3_600_000,
)
