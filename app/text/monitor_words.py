"""Fixed words of measurements: the Monitor page, the cards beside a chat, the warning."""

from app.text.words import Word


class MapWords:
    """The expert map."""

    TITLE = Word("Experts")
    TITLE_SMALL = Word("Experts now")
    NAME = Word("Expert map")
    BY = Word("Colour by")
    TIER = Word("tier")
    USE = Word("use")
    BITS = Word("bits")
    SORTED = Word("Sorted")
    SORTED_EXPLAINED = Word(
        "Sort each layer's experts by where they lie and how much they are used"
    )
    CAPTION_TIER = Word("Each row is a layer. Stronger colour: used more than others of its tier.")
    CAPTION_USE = Word("Each row is a layer. Stronger colour: used more in the last minute.")
    CAPTION_BITS = Word(
        "Each row is a layer. The colour says in how many bits an expert is stored."
    )
    CAPTION_BARS = Word("At the end of a row: which tiers answered its look-ups.")
    USED_LEAST = Word("used least")
    USED_MOST = Word("used most")
    LAYER_HITS = Word("Hits by layer")
    BY_TIER = Word("coloured by tier")
    NO_EXPERTS = Word("This model has no experts.")
    WAITING = Word("The map fills as soon as the model is asked something.")
    OPEN = Word("Open the Monitor page")


class LiveWords:
    """Numbers and curves."""

    FROM_VRAM = Word("From VRAM")
    FROM_RAM = Word("From RAM")
    FROM_DRIVE = Word("From the drive")
    THROUGHPUT = Word("Throughput")
    ENERGY = Word("Energy")
    NOT_ADDED_YET = Word("The answer that is being written is added when it ends.")
    POWER = Word("Watts over the last minute")
    TOKEN = Word("What a token takes")
    RAM_READ = Word("RAM read")
    LINK = Word("to the graphics card")
    DRIVE = Word("drive")
    DEVICE = Word("graphics card")
    CPU = Word("processor")
    DRIVE_WAIT = Word("waiting for the drive")
    OTHER = Word("other")
    HAPPENED = Word("What happened")
    NOTHING_HAPPENED = Word("Nothing out of the ordinary.")
    NO_POWER = Word("Energy is shown while the model answers.")
    NO_TOKEN = Word("Ask something, then this fills.")
    PAUSE = Word("Pause")
    GO_ON = Word("Go on")
    PAUSED = Word("Paused: the picture is of the moment you pressed Pause.")
    SIMULATED = Word("simulated")
    VRAM_SIMULATED = Word("VRAM is simulated")
    CPU_PART = Word("processor")
    GPU_PART = Word("graphics card")
    RAM_PART = Word("memory")
    DRIVE_PART = Word("drive")
    PC_PART = Word("whole PC")
    REST_PART = Word("rest")


class DriveWords:
    """Reading from the drive, and the warning about it."""

    TITLE = Word("Reading from the drive")
    NOTHING = Word("Nothing is read from the drive.")
    FINE = Word("Fine for now.")
    NOT_FINE = Word("This costs time or energy.")
    WORKING_OUT = Word("Working out what would help…")
    MORE_MEMORY = Word("Give it this memory")
    LOWER_BITS = Word("Switch to this plan")
    WRITE_LOWER_BITS = Word("Write it and switch")
    SMALLER_MODEL = Word("Choose another model")
    SMALLER_EXPLAINED = Word(
        "Neither more memory of this PC nor fewer bits would help much: a smaller model would."
    )
    SMALLER_TOO = Word("A smaller model would read less too.")
    QUIET = Word("Not again for this model")
    QUIET_EXPLAINED = Word("Under Settings, Energy, the warning can be had back.")
    QUIET_MODELS = Word("No warning about the drive for")
    QUIET_NONE = Word("Every model warns.")
    SPEAK_AGAIN = Word("Warn again")
    LIMIT = Word("Warn above this share of energy for the drive")
    LIMIT_HINT = Word("In percent. A warning also comes when waiting takes most of the time.")


class BudgetWords:
    """The sliders."""

    TITLE = Word("Memory for this model")
    VRAM = Word("VRAM budget")
    RAM = Word("RAM budget")
    EXPLAINED = Word(
        "Hatched: held by other programs. Dotted: the reserve, which stays free so that the system "
        "and other programs do not run short. Empty: of no use to this model."
    )
    NEXT_MODEL = Word("No model is loaded: this is what the next one may take.")
    TITLE_NEXT = Word("Memory for models")
    NOT_USED = Word("The graphics card is not used.")
    APPLYING = Word("Changing at the next token…")
    SET = Word("In force.")
