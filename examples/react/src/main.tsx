import { formatOutpoint } from 'minetree-client'
import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { useName } from './use-name'

/** The server: `?server=`, or one on this machine. */
const SERVER = new URLSearchParams(location.search).get('server') ?? 'http://127.0.0.1:8080'

function Name({ name }: { name: string }) {
  const state = useName(SERVER, name)
  if (state.kind === 'searching') return <p role="status">Looking up {name}…</p>
  if (state.kind === 'failed') return <p role="status">{state.message}</p>
  const { tip } = state.resolved
  return (
    <>
      <p role="status">
        {name} is verified at {formatOutpoint(tip.tip)} and belongs to {tip.owner ?? 'a script'}
      </p>
      <pre>{state.text}</pre>
    </>
  )
}

function App() {
  const [name, setName] = useState('')
  return (
    <>
      <h1>Look up a name</h1>
      <form action={(data) => setName(String(data.get('name')))}>
        <label>
          Name <input name="name" pattern="[a-z0-9\-]{1,255}" autoCapitalize="none" required />
        </label>
        <button type="submit">Look up</button>
      </form>
      {name !== '' && <Name name={name} />}
    </>
  )
}

const root = document.getElementById('root')
if (root !== null)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
