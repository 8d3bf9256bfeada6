import type { ComponentChildren } from 'preact'
import { Bars, Figure } from './chart.js'
import { renderPage, type Site } from './page.js'
import { Badge, Card, Facts, Head, PlainCard, Stat, Table, Text, Time } from './parts.js'
import { count, counted, shown } from './text.js'

interface Failure {
  at: number
  message: string
}

interface Source {
  name: string
  state: string
  requests: number
  failures: number
  lastError?: Failure | undefined
}

/** The part of `/health` that the page shows. */
export interface HealthView {
  version: string
  ready: boolean
  reasons: Record<string, string>
  index: { state: string; done: number }
  readers?: { running: number; wanted: number }
  refused: Record<string, Record<string, number>>
  height?: number | undefined
  lag?: number | undefined
  headers?:
    | {
        height?: number | undefined
        time?: number | undefined
        from?: number | undefined
        lastError?: Failure | undefined
        sources?: Source[] | undefined
      }
    | undefined
  follow?:
    | {
        state: string
        ordinals: string
        mints: number
        transfers: number
        height?: number | undefined
        unproven: number
        failures: number
        lastError?: Failure | undefined
      }
    | undefined
  ancestors?: { waiting: number; fetched: number; holes: number } | undefined
  sources?: Source[] | undefined
}

/** The state of a host, for its operator and for people who wonder why something is missing. */
export function statusPage({ site, health }: { site: Site; health: HealthView }): string {
  const { ready, reasons, index, readers, refused, height, lag, headers, follow, ancestors, sources } = health
  const refusals = Object.entries(refused).flatMap(([topic, codes]) =>
    Object.entries(codes).map(([code, times]) => ({ topic, code, times })),
  )
  const behind = [
    { part: 'headers', reached: headers?.height },
    { part: 'following', reached: follow?.height },
  ].flatMap(({ part, reached }) =>
    reached === undefined ? [] : [{ part, reached: Math.min(reached, height ?? 0) }],
  )
  const asked = [...(headers?.sources ?? []), ...(sources ?? [])]
  return renderPage({
    site,
    title: 'Status',
    description: 'The state of this host, and how far it has followed the chain.',
    section: 'status',
    path: '/status',
    children: (
      <>
        <Head
          title="Status"
          lede={
            !ready &&
            Object.entries(reasons).map(([part, reason]) => (
              <Text key={part} text={`${part}: ${reason}`} most={300} />
            ))
          }
          badges={ready ? <Badge kind="good">Ready</Badge> : <Badge kind="bad">Not ready</Badge>}
        />
        <dl class="stats">
          <Stat value={height === undefined ? '–' : count(height)} noun="block height" />
          <Stat value={lag === undefined ? '–' : count(lag)} noun="blocks behind" />
          <Stat
            value={readers ? `${readers.running} of ${readers.wanted}` : '1'}
            noun="processes that answer"
          />
          <Stat
            value={index.state === 'equal' ? 'complete' : index.state}
            noun={index.state === 'equal' ? 'index' : `index, ${Math.floor(index.done * 100)} % done`}
          />
        </dl>
        <div class="split">
          <div class="stack">
            {height !== undefined && behind.length > 0 && (
              <Card title="Blocks behind">
                <Figure
                  says={`The chain is at block ${count(height)}.`}
                  columns={['Part', 'Reached', 'Blocks behind']}
                  rows={behind.map(({ part, reached }) => [part, count(reached), count(height - reached)])}
                >
                  <Bars
                    panels={['']}
                    rows={behind.map(({ part, reached }) => ({
                      label: part,
                      values: [{ value: height - reached, text: blocksBehind(height - reached) }],
                    }))}
                  />
                </Figure>
              </Card>
            )}
            <Card title="Sources of the chain">
              {asked.length > 0 && (
                <figure class="chart">
                  <Bars
                    labels={150}
                    panels={['Requests']}
                    rows={asked.map(({ name, requests, failures }) => ({
                      label: shown(name.replace(/^https?:\/\//, ''), 24),
                      values: [
                        {
                          value: requests,
                          text:
                            failures === 0
                              ? count(requests)
                              : `${count(failures)} of ${count(requests)} failed`,
                        },
                      ],
                      failed: failures,
                    }))}
                  />
                </figure>
              )}
              {asked.length === 0 ? (
                <p class="hint">None: everything here was submitted.</p>
              ) : (
                <Table
                  folds
                  rows={asked}
                  columns={[
                    { head: 'Source', cell: ({ name }) => <Text text={name} /> },
                    {
                      head: 'State',
                      cell: ({ state }) => (
                        <span>
                          <Badge kind={state === 'ok' ? 'good' : 'wait'}>{state}</Badge>
                        </span>
                      ),
                    },
                    { head: 'Requests', cell: ({ requests }) => count(requests) },
                    { head: 'Failures', cell: ({ failures }) => count(failures) },
                  ]}
                />
              )}
            </Card>
            <Card title="Refused since the start">
              {refusals.length === 0 ? (
                <p class="hint">Nothing.</p>
              ) : (
                <Table
                  rows={refusals}
                  columns={[
                    { head: 'Topic', cell: ({ topic }) => topic },
                    { head: 'Code', cell: ({ code }) => <code>{code}</code> },
                    { head: 'Times', isEnd: true, cell: ({ times }) => count(times) },
                  ]}
                />
              )}
            </Card>
          </div>
          <div class="stack">
            <Card title="Headers">
              {headers === undefined ? (
                <p class="hint">Headers are not checked: every merkle path is trusted.</p>
              ) : (
                <Facts
                  facts={{
                    'Last block': headers.height === undefined ? 'not known yet' : count(headers.height),
                    Mined: headers.time !== undefined && <Time at={headers.time * 1000} />,
                    From: headers.from !== undefined && count(headers.from),
                    'Last failure': failureText(headers.lastError),
                  }}
                />
              )}
            </Card>
            <Card title="Following">
              {follow === undefined ? (
                <p class="hint">This host does not follow the chain.</p>
              ) : (
                <Facts
                  facts={{
                    State: follow.state,
                    Ordinals: follow.ordinals,
                    'Up to': follow.height !== undefined && `block ${count(follow.height)}`,
                    Mints: `${count(follow.mints)} since the start`,
                    Transfers: `${count(follow.transfers)} since the start`,
                    Unproven: counted(follow.unproven, 'transaction'),
                    Failures: count(follow.failures),
                    'Last failure': failureText(follow.lastError),
                  }}
                />
              )}
            </Card>
            {ancestors && (
              <Card title="Missing ancestors">
                <Facts
                  facts={{
                    Waiting: counted(ancestors.waiting, 'ordinal'),
                    Fetched: counted(ancestors.fetched, 'transaction'),
                    'Not found': counted(ancestors.holes, 'ordinal'),
                  }}
                />
              </Card>
            )}
            <PlainCard label="For programs">
              <p class="hint">
                For programs: <a href="/health">/health</a>, <a href="/health/ready">/health/ready</a>,{' '}
                <a href="/metrics">/metrics</a>.
              </p>
            </PlainCard>
          </div>
        </div>
      </>
    ),
  })
}

function blocksBehind(blocks: number): string {
  return blocks === 0 ? 'up to date' : `${counted(blocks, 'block')} behind`
}

function failureText(failure: Failure | undefined): ComponentChildren {
  if (failure === undefined) return undefined
  return (
    <>
      <Text text={failure.message} most={200} /> (<Time at={failure.at} />)
    </>
  )
}
