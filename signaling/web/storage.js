// What the browser keeps for this page: choices for good, the key for as long as the tab is open.
// A browser that keeps nothing for us is no fault: then nothing is remembered.

const PREFIX = "ferryline.";

function keeper(storage) {
  return {
    get(name) {
      try {
        return storage().getItem(PREFIX + name);
      } catch {
        return null;
      }
    },
    set(name, value) {
      try {
        if (value === null || value === "") storage().removeItem(PREFIX + name);
        else storage().setItem(PREFIX + name, value);
      } catch {
        // not remembered
      }
    },
  };
}

export const choices = keeper(() => localStorage);
export const secrets = keeper(() => sessionStorage);
