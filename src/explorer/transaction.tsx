import type { VNode } from 'preact'
import { dependency } from '../../backend/src/graph/dependencies.js'
import type { TransactionOutput } from '../../backend/src/read/listings.js'
import { renderPage } from './page.js'
import {
  AddressLink,
  Badge,
  Card,
  contentLabel,
  Empty,
  Facts,
  Head,
  Hex,
  NameLink,
  Pager,
  PlainCard,
  Table,
  When,
} from './parts.js'
import { addressOf, blockTimes, type Explorer, type MadePage } from './reads.js'
import { count, counted, shortened } from './text.js'

const PAGE = 50

/** The stored parts of a transaction; undefined if there are none. @param after Continues after this output index. */
export function transactionPage(explorer: Explorer, txid: string, after?: number): MadePage | undefined {
  const { store, site } = explorer
  const found = store.listings.transaction({ txid, limit: PAGE, ...(after !== undefined && { after }) })
  if (found === undefined) return undefined
  const { height, isActive, outputs, next } = found
  const timeOf = blockTimes(explorer, [{ height }])
  const walletPrefix = site.namesPrefix.replace(/\/[^/]*$/, '')
  const html = renderPage({
    site,
    title: `Transaction ${shortened(txid)}`,
    description: 'The stored outputs of a transaction.',
    path: `/tx/${txid}`,
    children: (
      <>
        <Head
          title={shortened(txid, { start: 10, end: 8 })}
          subject={txid}
          badges={
            !isActive ? (
              <Badge kind="bad">Lost a conflict: it does not count</Badge>
            ) : height === undefined ? (
              <Badge kind="wait">Unconfirmed</Badge>
            ) : (
              <Badge kind="plain">In block {count(height)}</Badge>
            )
          }
          actions={
            <a class="btn ghost" href={`${walletPrefix}/beef/${txid}`} download={`${txid}.beef`}>
              Download BEEF
            </a>
          }
        />
        <div class="split">
          <Card title="Outputs that are held here">
            {outputs.length === 0 ? (
              <Empty>
                No topic holds any of its outputs: it is stored for the transactions that spend it, or as part
                of a proof.
              </Empty>
            ) : (
              <Table
                folds
                rows={outputs}
                columns={[
                  {
                    head: 'Output',
                    cell: ({ vout, output }) =>
                      output === undefined ? (
                        <code>_{vout}</code>
                      ) : (
                        <a href={`/ordinal/${txid}_${vout}`}>
                          <code>_{vout}</code>
                        </a>
                      ),
                  },
                  { head: 'What it is', cell: (output) => <span>{whatItIs(output)}</span> },
                  {
                    head: 'Owner',
                    cell: ({ output }) => {
                      const address = addressOf(explorer, output?.owner)
                      return address === undefined ? <span>–</span> : <AddressLink address={address} />
                    },
                  },
                  {
                    head: 'Spent by',
                    cell: ({ spender }) =>
                      spender === undefined ? (
                        <span>unspent</span>
                      ) : (
                        <Hex text={spender} what="transaction id" href={`/tx/${spender}`} />
                      ),
                  },
                ]}
              />
            )}
            <Pager
              first={after === undefined ? undefined : `/tx/${txid}`}
              next={next === undefined ? undefined : `/tx/${txid}?after=${next}`}
            />
          </Card>
          <PlainCard label="Facts">
            <Facts
              facts={{
                Id: <Hex text={txid} what="transaction id" />,
                Mined: <When height={height} time={timeOf(height)} />,
                Outputs: counted(outputs.length, 'output here', 'outputs here'),
              }}
            />
          </PlainCard>
        </div>
      </>
    ),
  })
  return { html, dependsOn: [dependency.all] }
}

function whatItIs({ output, name, domain, blocked }: TransactionOutput): VNode {
  return (
    <>
      {blocked && 'Blocked by the operator'}
      {name !== undefined && (
        <>
          The name <NameLink name={name} />
        </>
      )}
      {domain !== undefined && (
        <>
          Node of <a href={`/tree?prefix=${domain}`}>{domain === '' ? 'the root' : domain}</a>
        </>
      )}
      {name === undefined &&
        output !== undefined &&
        (output.content ? contentLabel(output.content) : `${count(output.satoshis)} sat`)}
    </>
  )
}
