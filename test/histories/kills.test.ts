import { FactsHost } from './facts-host.js'
import { Run } from './run.js'
import { Snapshots } from './snapshots.js'
import { expectRuns } from './trial.js'
import { WIDE, wide } from './wide.js'

// The process may end between any two statements of the writer, also between the commits of log and index: what was answered is
// there, what was not is there whole or not at all, and the index is that of its log.

const host = new FactsHost(WIDE)
const restarted = new FactsHost(WIDE)
afterAll(async () => {
  await host.close()
  await restarted.close()
})

test('a kill between any two statements loses nothing that was answered, and leaves nothing by halves', async () => {
  await expectRuns({
    plan: wide,
    runs: 2,
    least: ['killed: between the commits', 'killed: before a commit of the log', 'killed: amid a write'],
    async run({ deeds, mined, happenings }, index) {
      const killed: Record<string, number> = {}
      const count = (what: string): void => {
        killed[`killed: ${what}`] = (killed[`killed: ${what}`] ?? 0) + 1
      }
      const run = await Run.start({
        ...{ deeds, shape: WIDE, mined: { blocks: 4, share: 0.5, choice: mined } },
        async open({ headers }) {
          await host.clear(headers)
          return host
        },
      })
      await run.submitGenesis()
      const snapshots = new Snapshots(() => host.dataDir, { seed: mined + index, writes: 0.01, commits: 0.3 })
      try {
        for (const each of happenings) {
          const before = run.model.copy()
          snapshots.take()
          await run.happen(each)
          const { commits } = snapshots
          for (const snapshot of snapshots.take()) {
            const isBetween = snapshot.before.startsWith('index') && snapshot.before.endsWith('commit')
            const isAtLog = snapshot.before.endsWith('commit') && !isBetween
            count(isBetween ? 'between the commits' : isAtLog ? 'before a commit of the log' : 'amid a write')
            const when = `killed while ${each.kind}, before ${snapshot.before}`
            await restarted.openOn(snapshot.folder, run.chain.headers)
            const answered = run.history.transactions
              .map(({ txid }) => txid)
              .filter((txid) => before.isKnown(txid))
            const kept = await restarted.kept(answered)
            const lost = answered.filter((txid) => !kept.includes(txid))
            run.expectSame(when, lost.length > 0 ? { lost: { got: lost, expected: [] } } : {})
            run.expectSame(`${when}: derived again`, restarted.rebuiltDifferences())
            // What took one commit is there whole, or not at all.
            if (commits === 1) {
              const expected = snapshot.commits === 0 ? before : run.model
              run.expectSame(when, await restarted.storedDifferences(expected))
              count('and compared')
            }
          }
        }
      } finally {
        snapshots.close()
      }
      return { ...run.happened, ...killed }
    },
  })
}, 3_600_000)
