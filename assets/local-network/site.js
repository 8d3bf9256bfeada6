// What only a script can say: which names are mined by now, and where this server listens. Content runs in an origin of
// its own, and asks the gateway as any other site does.

for (const command of document.querySelectorAll('.command')) command.append(` --url ${location.origin}`)

const link = (name) => {
  const a = document.createElement('a')
  a.href = `/svc/names/${name}`
  a.textContent = name
  return a
}

fetch('/svc/names')
  .then((response) => response.json())
  .then(({ names, next }) => {
    const links = names.flatMap(({ name }, at) => (at === 0 ? [link(name)] : [', ', link(name)]))
    const rest = next === undefined ? [] : [' and more']
    document.getElementById('names').replaceChildren(...links, ...rest)
  })
